//! Simulated device, power-loss oracle and models for testing Duramen.
