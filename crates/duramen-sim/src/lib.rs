//! Simulated device, power-loss oracle and models for testing Duramen.
//!
//! A seed fixes a run: the device, the clock and every choice of a test draw from [`Random`].

mod clock;
mod device;
pub mod json;
pub mod model;
mod random;
pub mod samples;

pub use clock::SimulatedClock;
pub use device::{FaultKind, FaultPlan, Operation, PowerLoss, PowerOff, Profile, SimulatedDevice};
pub use random::Random;
