//! What can happen, what may go wrong, and what must not come of it.

pub const BOTH: [usize; 2] = [0, 1];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// A topic is larger than anyone correct wanted.
    Overgrown,
    /// A request took effect while another one leads, or had led since.
    NotExclusive,
    /// Two intents in one log have the same number.
    EpochReused,
    /// A count fell, and the topic is still the same.
    Shrunk,
}

/// What may still go wrong or change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    pub pauses: u8,
    pub cuts: u8,
    pub ends: u8,
    pub timeouts: u8,
    pub growths: u8,
    pub recreations: u8,
    pub plans: u8,
    pub models: u8,
    pub shrinks: u8,
    pub losses: u8,
}

impl Faults {
    /// How often this step is still possible; `None` for what happens in any case.
    pub fn of(&mut self, step: Step) -> Option<&mut u8> {
        Some(match step {
            Step::Pause(_) => &mut self.pauses,
            Step::Cut(_) => &mut self.cuts,
            Step::Crash(_) | Step::Leave(_) => &mut self.ends,
            Step::CommitTimesOut(..) => &mut self.timeouts,
            Step::Grow => &mut self.growths,
            Step::Recreate => &mut self.recreations,
            Step::Expand(_) => &mut self.plans,
            Step::Learn(_) => &mut self.models,
            Step::Shrink => &mut self.shrinks,
            Step::LoseLog => &mut self.losses,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    None,
    /// The request goes out although the session may have run out.
    IgnoresMargin,
    /// The process may stand still between the check and the request.
    SendsLate,
    /// The log is read before `init_transactions` has fenced the others.
    ReadsLogFirst,
    /// An operator's plan is carried out without a look at the topic ids.
    IgnoresTopicIds,
    /// A fenced leader that still has partition 0 waits for its next win.
    FencedForGood,
    /// Who begins anew evicts the member that it was before, which may have a request on its way.
    EvictsTheDead,
    /// A leader goes on although the log that had its intent is gone.
    IgnoresLostLog,
    /// The broker sets whatever count it is asked for.
    ObeysAnyCount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Tick,
    Expire(usize),
    Notice(usize),
    Join(usize),
    Win(usize),
    Work(usize),
    Finish(usize),
    CommitTimesOut(usize, bool),
    Act(usize, bool),
    Expand(usize),
    Arrive(usize),
    Vanish(usize),
    Pause(usize),
    Cut(usize),
    Heal(usize),
    Crash(usize),
    Leave(usize),
    Restart(usize),
    Reread(usize),
    Rejoin(usize),
    Learn(usize),
    Grow,
    Recreate,
    Shrink,
    LoseLog,
}

pub const STEPS: &[fn(usize) -> Step] = &[
    Step::Expire,
    Step::Notice,
    Step::Join,
    Step::Win,
    Step::Work,
    Step::Finish,
    |i| Step::CommitTimesOut(i, true),
    |i| Step::CommitTimesOut(i, false),
    |i| Step::Act(i, false),
    |i| Step::Act(i, true),
    Step::Expand,
    Step::Arrive,
    Step::Vanish,
    Step::Pause,
    Step::Cut,
    Step::Heal,
    Step::Crash,
    Step::Leave,
    Step::Restart,
    Step::Reread,
    Step::Rejoin,
    Step::Learn,
];

/// What happens by itself once nothing goes wrong any more. A group need not notice that its topic is another one.
pub const REPAIR: &[fn(usize) -> Step] =
    &[Step::Heal, Step::Expire, Step::Notice, Step::Reread, Step::Join, Step::Win, Step::Arrive, Step::Finish, Step::Work, |i| {
        Step::Act(i, false)
    }];
