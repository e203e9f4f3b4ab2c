//! Two sidecars around the code under test, and what is around them: a group coordinator, a transaction coordinator, a log, two
//! topics, and a clock that counts seconds.

use partition_autoscaler::coordinator::{Action, Event, Failure, Fingerprint, Held, Refusal};

use crate::sidecar::{Call, Intent, Plan, Process, Request, SESSION, Sidecar, seconds};
use crate::steps::{BOTH, Broken, Faults, Flaw, REPAIR, Step};

/// How long after a change a lagging broker may still show what was before.
const LAG: u8 = 1;
/// What an operator asks for.
const ASKED: u8 = 3;

/// An input and the internal topic that follows it. Another generation: both were deleted and created anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Topics {
    generation: u8,
    pub input: u8,
    pub internal: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub now: u8,
    /// Arrival of the latest heartbeat of each member.
    sessions: [Option<u8>; 2],
    owner: Option<usize>,
    producer: u8,
    /// The coordinator topic. Another number: it was deleted and created anew.
    log: u8,
    last_epoch: u64,
    /// Under which intent requests go out, whether the log still has it or not.
    standing: Option<(usize, Fingerprint)>,
    standing_is_in_log: bool,
    unfinished: Option<Plan>,
    pub topics: Topics,
    before: Topics,
    changed: u8,
    recreated: Option<u8>,
    /// The highest count that the internal topic should have.
    wanted: u8,
    network: [Option<Request>; 2],
    sidecars: [Sidecar; 2],
    left: Faults,
    pub broken: Option<Broken>,
}

impl World {
    /// Sidecar 0 has just won; the two are alike, so it does not matter who is first.
    pub fn new(faults: Faults, flaw: Flaw) -> Self {
        let topics = Topics { generation: 0, input: 1, internal: 1 };
        let mut world = World {
            now: 0,
            sessions: [Some(0); 2],
            owner: None,
            producer: 0,
            log: 0,
            last_epoch: 0,
            standing: None,
            standing_is_in_log: false,
            unfinished: None,
            topics,
            before: topics,
            changed: 0,
            recreated: None,
            wanted: 1,
            network: [None; 2],
            sidecars: BOTH.map(|_| Sidecar::new(Fingerprint(0), 0)),
            left: faults,
            broken: None,
        };
        world.step(Step::Win(0), flaw).unwrap();
        world
    }

    /// A first look, which spares a copy of the world.
    pub fn might(&self, step: Step) -> bool {
        let mut left = self.left;
        let more = left.of(step).is_none_or(|left| *left > 0);
        more && match step {
            Step::Work(i) | Step::Act(i, _) | Step::Expand(i) | Step::Leave(i) | Step::Learn(i) | Step::Reread(i) => {
                self.is_idle(i)
            }
            Step::Finish(i) | Step::CommitTimesOut(i, _) => self.runs(i) && self.sidecars[i].call.is_some(),
            Step::Arrive(i) | Step::Vanish(i) => self.network[i].is_some(),
            Step::Notice(i) | Step::Rejoin(i) => self.sidecars[i].lease.is_some(),
            Step::Join(i) => self.sidecars[i].lease.is_none(),
            Step::Win(i) => self.sidecars[i].lease.is_none() && self.owner.is_none(),
            _ => true,
        }
    }

    /// Changes the world; `None` where the step is not possible.
    pub fn step(&mut self, step: Step, flaw: Flaw) -> Option<()> {
        self.might(step).then_some(())?;
        if let Some(left) = self.left.of(step) {
            *left -= 1;
        }
        match step {
            Step::Tick => self.tick()?,
            Step::Expire(i) => {
                self.sessions[i].filter(|arrived| self.now >= arrived + SESSION)?;
                self.sessions[i] = None;
                self.owner = self.owner.filter(|owner| *owner != i);
            }
            Step::Notice(i) => {
                let me = &mut self.sidecars[i];
                let told = me.process == Process::Up && self.sessions[i].is_none();
                let overdue = me.process == Process::Cut
                    && me.lease.is_some_and(|held| seconds(self.now) >= held.renewed + seconds(SESSION));
                me.lease.filter(|_| told || overdue)?;
                me.lease = None;
            }
            Step::Join(i) => {
                let me = &self.sidecars[i];
                let up = me.process == Process::Up;
                // What a process had that ended, it cannot give back: that has to expire.
                let gives_back = self.owner == Some(i) && (me.wins > 0 || flaw == Flaw::EvictsTheDead);
                (up && (self.sessions[i].is_none() || gives_back)).then_some(())?;
                self.sessions[i] = Some(self.now);
                self.owner = self.owner.filter(|owner| *owner != i);
            }
            Step::Win(i) => {
                let me = &mut self.sidecars[i];
                let member = me.process == Process::Up && self.sessions[i].is_some();
                member.then_some(())?;
                self.owner = Some(i);
                self.sessions[i] = Some(self.now);
                me.wins += 1;
                me.lease = Some(Held { term: me.wins, renewed: seconds(self.now) });
                me.won = self.log;
                me.log = self.log;
                me.read_early = self.last_epoch;
                me.fenced = false;
            }
            Step::Work(i) => self.work(i, flaw)?,
            Step::Finish(i) => self.finish(i, flaw)?,
            Step::CommitTimesOut(i, committed) => self.commit_times_out(i, committed)?,
            Step::Act(i, lagging) => self.act(i, lagging, flaw)?,
            Step::Expand(i) => {
                let generation = self.topics.generation;
                self.wanted = ASKED;
                self.begin_plan(i, generation)?;
            }
            Step::Arrive(i) => self.arrive(i, flaw)?,
            Step::Vanish(i) => drop(self.network[i].take()?),
            Step::Pause(i) => self.becomes(i, &[Process::Up], Process::Paused)?,
            Step::Cut(i) => self.becomes(i, &[Process::Up], Process::Cut)?,
            Step::Heal(i) => self.becomes(i, &[Process::Paused, Process::Cut], Process::Up)?,
            Step::Crash(i) => {
                self.becomes(i, &[Process::Up, Process::Paused], Process::Gone)?;
                self.sidecars[i].call = None;
            }
            Step::Leave(i) => {
                self.becomes(i, &[Process::Up], Process::Gone)?;
                let me = &mut self.sidecars[i];
                me.leadership.on(Event::StepDown);
                me.lease = None;
                self.sessions[i] = None;
                self.owner = self.owner.filter(|owner| *owner != i);
            }
            Step::Restart(i) => {
                self.becomes(i, &[Process::Gone], Process::Up)?;
                self.sidecars[i] = Sidecar::new(self.sidecars[i].model, self.log);
            }
            Step::Reread(i) => {
                let me = &self.sidecars[i];
                (me.lease.is_some() && me.log != self.log).then_some(())?;
                self.reread(i, flaw);
            }
            Step::Rejoin(i) => {
                let me = &mut self.sidecars[i];
                let told = me.process == Process::Up && self.owner == Some(i) && me.won != self.log;
                told.then_some(())?;
                me.lease = None;
                self.sessions[i] = Some(self.now);
                self.owner = None;
                // What is on its way cannot be called back. It asks for no more than was wanted.
                if let Some(request) = &mut self.network[i] {
                    request.overtaken = true;
                }
            }
            Step::Learn(i) => {
                let me = &mut self.sidecars[i];
                me.model = Fingerprint(1);
                me.leadership.on(Event::Model(me.model));
            }
            Step::Grow => {
                let input = self.topics.input + 1;
                self.change(Topics { input, ..self.topics });
            }
            Step::Recreate => {
                self.wanted = 1;
                self.recreated = Some(self.now);
                self.change(Topics { generation: self.topics.generation + 1, input: 1, internal: 1 });
            }
            Step::LoseLog => {
                self.log += 1;
                self.last_epoch = 0;
                self.unfinished = None;
                self.standing_is_in_log = false;
            }
            // Not ours: whoever may create partitions can ask for fewer.
            Step::Shrink => {
                let Topics { input, internal, .. } = self.topics;
                (input > 1).then(|| self.create_partitions(input - 1, internal - 1, flaw))?;
            }
        }
        Some(())
    }

    fn tick(&mut self) -> Option<()> {
        let next = self.now + 1;
        // What is on its way arrives in time, or not at all.
        self.network.iter().flatten().all(|request| next < request.until).then_some(())?;
        self.now = next;
        for i in BOTH {
            let me = &mut self.sidecars[i];
            // Who has given up its membership by itself has to join anew.
            let member = self.sessions[i].is_some() && (self.owner != Some(i) || me.lease.is_some());
            if me.process == Process::Up && member {
                self.sessions[i] = Some(next);
                me.lease = me.lease.map(|held| Held { renewed: seconds(next), ..held });
            }
        }
        Some(())
    }

    fn change(&mut self, topics: Topics) {
        let Topics { generation, input, internal } = self.topics;
        if topics.generation == generation && (topics.input < input || topics.internal < internal) {
            self.broken = Some(Broken::Shrunk);
        }
        self.before = self.topics;
        self.topics = topics;
        self.changed = self.now;
        self.wanted = self.wanted.max(topics.input);
    }

    fn becomes(&mut self, i: usize, from: &[Process], to: Process) -> Option<()> {
        from.contains(&self.sidecars[i].process).then(|| self.sidecars[i].process = to)
    }

    fn runs(&self, i: usize) -> bool {
        matches!(self.sidecars[i].process, Process::Up | Process::Cut)
    }

    /// Runs, and waits for no call.
    fn is_idle(&self, i: usize) -> bool {
        self.runs(i) && self.sidecars[i].call.is_none() && self.network[i].is_none()
    }

    /// Asks the code under test what to do, and does it or begins it.
    fn work(&mut self, i: usize, flaw: Flaw) -> Option<()> {
        let now = seconds(self.now);
        let me = &mut self.sidecars[i];
        if me.fenced && flaw == Flaw::FencedForGood {
            return None;
        }
        match me.leadership.next(now, me.lease) {
            Action::Follow | Action::Wait => return None,
            Action::Lead { .. } => {
                let inherited = me.inherited?;
                self.begin_plan(i, inherited.generation)?;
            }
            Action::DropWriter => {
                me.writer = None;
                me.plan = None;
            }
            Action::InitWriter { term, .. } => me.call = Some(Call::Init { term }),
            Action::ReadLog { term, .. } => match self.refuses_write(i) {
                Some(failure) => self.fail(i, term, failure),
                None => self.sidecars[i].call = Some(Call::Mark { term }),
            },
            Action::CommitStandingIntent { term, epoch, fingerprint, .. } => {
                self.begin_commit(i, term, epoch, Intent::Standing(fingerprint));
            }
        }
        Some(())
    }

    fn begin_plan(&mut self, i: usize, generation: u8) -> Option<()> {
        let me = &mut self.sidecars[i];
        let epoch = me.leadership.begin_plan(seconds(self.now), me.lease, me.model).ok()?;
        me.plan = None;
        me.inherited = None;
        let term = me.lease?.term;
        self.begin_commit(i, term, epoch, Intent::Operator { generation });
        Some(())
    }

    /// The group checks the member; the producer's epoch is checked here and again at the end.
    fn refuses_write(&self, i: usize) -> Option<Failure> {
        match self.sidecars[i].writer {
            writer if writer != Some(self.producer) => Some(Failure::Fenced),
            _ if self.sessions[i].is_none() => Some(Failure::NotMember),
            _ => None,
        }
    }

    fn begin_commit(&mut self, i: usize, term: u64, epoch: u64, intent: Intent) {
        match self.refuses_write(i) {
            Some(failure) => self.fail(i, term, failure),
            None => self.sidecars[i].call = Some(Call::Commit { term, epoch, intent, log: self.log }),
        }
    }

    fn fail(&mut self, i: usize, term: u64, failure: Failure) {
        let me = &mut self.sidecars[i];
        me.fenced |= failure == Failure::Fenced;
        me.leadership.on(Event::Failed { term, failure, at: seconds(self.now) });
    }

    fn finish(&mut self, i: usize, flaw: Flaw) -> Option<()> {
        match self.sidecars[i].call.take()? {
            Call::Init { term } => {
                self.producer += 1;
                let me = &mut self.sidecars[i];
                me.writer = Some(self.producer);
                me.leadership.on(Event::WriterReady { term });
            }
            Call::Commit { term, epoch, intent, log } if self.sidecars[i].writer == Some(self.producer) => {
                self.append(i, epoch, intent, log);
                let me = &mut self.sidecars[i];
                me.leadership.on(Event::IntentCommitted { term, epoch });
                if let Intent::Operator { generation } = intent {
                    me.plan = Some(Plan { epoch, generation });
                }
            }
            Call::Mark { .. } if self.sidecars[i].log != self.log => self.reread(i, flaw),
            Call::Mark { term } if self.sidecars[i].writer == Some(self.producer) => {
                let me = &mut self.sidecars[i];
                let last_epoch = if flaw == Flaw::ReadsLogFirst { me.read_early } else { self.last_epoch };
                me.inherited = self.unfinished;
                me.leadership.on(Event::LogRead { term, last_epoch });
            }
            Call::Commit { term, .. } | Call::Mark { term } => self.fail(i, term, Failure::Fenced),
            Call::Send(request) => self.network[i] = Some(Request { until: self.now + SESSION, ..request }),
        }
        Some(())
    }

    fn commit_times_out(&mut self, i: usize, committed: bool) -> Option<()> {
        let term = match self.sidecars[i].call.take()? {
            Call::Commit { term, epoch, intent, log } => {
                if committed && self.sidecars[i].writer == Some(self.producer) {
                    self.append(i, epoch, intent, log);
                }
                term
            }
            Call::Mark { term } => term,
            _ => return None,
        };
        self.fail(i, term, Failure::TimedOut);
        Some(())
    }

    fn append(&mut self, i: usize, epoch: u64, intent: Intent, log: u8) {
        if let Intent::Standing(fingerprint) = intent {
            self.standing = Some((i, fingerprint));
        }
        // Kafka commits a transaction although a topic of it is gone.
        if log != self.log {
            return;
        }
        if epoch <= self.last_epoch {
            self.broken = Some(Broken::EpochReused);
        }
        self.last_epoch = epoch;
        match intent {
            Intent::Standing(_) => self.standing_is_in_log = true,
            Intent::Operator { generation } => self.unfinished = Some(Plan { epoch, generation }),
        }
    }

    /// Finds that the log is another one. What was read of it is void, and so is what was committed.
    fn reread(&mut self, i: usize, flaw: Flaw) {
        let me = &mut self.sidecars[i];
        me.log = self.log;
        me.inherited = None;
        if let Some(held) = me.lease.filter(|_| flaw != Flaw::IgnoresLostLog) {
            me.leadership.on(Event::TopicRestarted { term: held.term });
        }
    }

    /// Observes, plans, asks whether the request may go out, and sends it.
    fn act(&mut self, i: usize, lagging: bool, flaw: Flaw) -> Option<()> {
        let lags = self.now <= self.changed + LAG;
        let seen = if lagging { Some(self.before).filter(|_| lags && self.before != self.topics)? } else { self.topics };
        let now = seconds(self.now);
        let me = &mut self.sidecars[i];
        let leads = matches!(me.leadership.clone().next(now, me.lease), Action::Lead { .. });
        (leads || flaw == Flaw::IgnoresMargin).then_some(())?;
        let (input, internal) = match me.plan {
            Some(plan) => {
                let void = plan.generation != seen.generation && flaw != Flaw::IgnoresTopicIds;
                if void || seen.internal >= ASKED {
                    return self.end_plan(i, plan);
                }
                (ASKED, ASKED)
            }
            None => (0, seen.input),
        };
        (seen.internal < internal).then_some(())?;
        let left = me.leadership.may_send(now, me.lease, me.model, me.plan.map(|plan| plan.epoch));
        let until = match left {
            Ok(left) => self.now + u8::try_from(left.as_secs()).unwrap(),
            Err(Refusal::MarginSpent) if flaw == Flaw::IgnoresMargin => self.now + SESSION,
            Err(Refusal::OtherModel) if me.plan.is_some() => return self.begin_plan(i, seen.generation),
            Err(_) => return None,
        };
        let generation = seen.generation;
        let request = Request { input, internal, generation, fingerprint: me.model, allowed: self.now, until, overtaken: false };
        if flaw == Flaw::SendsLate {
            me.call = Some(Call::Send(request));
        } else {
            self.network[i] = Some(request);
        }
        Some(())
    }

    /// The outcome is committed; if that fails, whoever leads next does it.
    fn end_plan(&mut self, i: usize, plan: Plan) -> Option<()> {
        let term = self.sidecars[i].lease?.term;
        if self.sidecars[i].writer != Some(self.producer) {
            self.sidecars[i].plan = None;
            self.fail(i, term, Failure::Fenced);
            return Some(());
        }
        let me = &mut self.sidecars[i];
        me.plan = None;
        me.leadership.on(Event::OutcomeCommitted { term, epoch: plan.epoch });
        self.unfinished = self.unfinished.filter(|unfinished| unfinished.epoch != plan.epoch);
        Some(())
    }

    /// The request reaches the controller.
    fn arrive(&mut self, i: usize, flaw: Flaw) -> Option<()> {
        let request = self.network[i].take()?;
        let exclusive = self.owner.is_none_or(|owner| owner == i) && self.standing == Some((i, request.fingerprint));
        if !exclusive && !request.overtaken && flaw != Flaw::SendsLate {
            self.broken = Some(Broken::NotExclusive);
        }
        let most = self.topics.internal.max(self.wanted);
        self.create_partitions(request.input, request.internal, flaw);
        // CreatePartitions names topics and not their ids, so that a topic is recreated while a request is on its way cannot be helped.
        // But such a request is not older than a session.
        let helpless = self.recreated.is_some_and(|at| at + LAG >= request.allowed) && self.now < request.allowed + SESSION;
        if self.topics.internal > most && !helpless {
            self.broken = Some(Broken::Overgrown);
        }
        Some(())
    }

    /// As Kafka does, each topic for itself: a count that is not above the present one is refused (`INVALID_PARTITIONS`).
    fn create_partitions(&mut self, input: u8, internal: u8, flaw: Flaw) {
        let accepts = |present: u8, asked: u8| asked > present || flaw == Flaw::ObeysAnyCount && asked > 0;
        let mut topics = self.topics;
        if accepts(topics.input, input) {
            topics.input = input;
        }
        if accepts(topics.internal, internal) {
            topics.internal = internal;
        }
        if topics != self.topics {
            self.change(topics);
        }
    }

    /// From here on nothing goes wrong: does a leader mend everything?
    pub fn is_repaired_in_the_end(&self, flaw: Flaw) -> bool {
        let mut world = self.clone();
        // Even if nothing is left to do now: the next growth has to be followed.
        world.change(Topics { input: world.topics.input.max(world.topics.internal) + 1, ..world.topics });
        for _ in 0..4 * SESSION {
            while BOTH.iter().any(|i| REPAIR.iter().any(|step| world.step(step(*i), flaw).is_some())) {
                let followed = world.topics.internal >= world.topics.input && world.unfinished.is_none();
                if followed && world.standing_is_in_log {
                    return true;
                }
            }
            if world.tick().is_none() {
                return false;
            }
        }
        false
    }
}
