//! Aggregates of one table straight from its encoded columns.
//!
//! A rule ([`rule`]) finds aggregates whose filters, keys and functions the engine knows
//! ([`lowering`]) and puts an operator ([`operator`]) before them. The plan that it stands for is
//! its input: what turns out to be beyond it (too many groups, averages that depend on the order of
//! additions) is answered by that.
//!
//! A query that is asked again, with other literals too, has its plan from before and goes to the
//! engine by itself ([`dispatch`]).

mod dispatch;
mod filter;
mod literals;
mod lowering;
mod operator;
mod output;
mod prepared;
mod rule;
mod run;
mod template;

pub(crate) use operator::Planner;
pub(crate) use prepared::Prepared;
pub(crate) use rule::with_rule;
