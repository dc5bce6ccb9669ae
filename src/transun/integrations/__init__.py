"""What other tools want of a model and its training: trackers of numbers, registries of models, metrics.

Each tool has a module of its own, which needs the tool: `transun.integrations.mlflow`, `.tensorboard` and `.wandb`
track trainings, `.mlflow` and `.huggingface` publish models, and `.torchmetrics` turns metrics into its own.
"""

__all__: list[str] = []
