//! Who may search now: a few threads at once, in the order of arrival, each with its own connection.
//!
//! More searches than processors would only slow down all of them, and a thread that comes back at once
//! must not overtake those that wait.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::database::Database;

/// The free turns, the threads that wait, and the idle connections.
pub(super) struct Turns(Mutex<Queue>);

struct Queue {
    most: usize,
    free: usize,
    idle: Vec<Database>,
    waiting: VecDeque<SyncSender<Option<Database>>>,
}

/// Permission to search, until it is dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    /// A connection that an earlier turn has left, if there is one.
    pub(super) database: Option<Database>,
}

impl Turns {
    /// Allows this many turns at once.
    pub(super) fn new(most: usize) -> Self {
        Turns(Mutex::new(Queue { most, free: most, idle: Vec::new(), waiting: VecDeque::new() }))
    }

    /// Waits for a turn.
    pub(super) fn turn(&self) -> Turn<'_> {
        let mut queue = self.queue();
        if queue.free > 0 {
            queue.free -= 1;
            return Turn { turns: self, database: queue.idle.pop() };
        }
        let (given, turn) = sync_channel(1);
        queue.waiting.push_back(given);
        drop(queue);
        let database = turn.recv().expect("whoever has a turn hands it on");
        Turn { turns: self, database }
    }

    /// Whether any turn is taken.
    pub(super) fn are_taken(&self) -> bool {
        let queue = self.queue();
        queue.free < queue.most
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A connection that cannot end its transaction is not passed on.
        let database = self.database.take().filter(|database| database.end().is_ok());
        let mut queue = self.turns.queue();
        match queue.waiting.pop_front() {
            Some(next) => drop(next.send(database)),
            None => {
                queue.free += 1;
                queue.idle.extend(database);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_in_the_order_of_coming() {
        let turns = Turns::new(1);
        let (told, heard) = sync_channel(10);
        let first = turns.turn();
        std::thread::scope(|scope| {
            for number in 0..5 {
                let (turns, told) = (&turns, told.clone());
                scope.spawn(move || {
                    let _turn = turns.turn();
                    told.send(number).expect("someone hears");
                });
                while turns.queue().waiting.len() <= number {
                    std::thread::yield_now();
                }
            }
            drop(first);
        });
        drop(told);
        assert_eq!(heard.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(turns.queue().free, 1);
    }
}
