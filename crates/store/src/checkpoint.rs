//! What is kept beside logs so that they need not be read again. Disposable: without any of it everything is as it was,
//! only slower. It is in no archive and no export.

use baton_model::{Digest, RunId};

/// A run's state as it was after some of its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub run: RunId,
    /// How many records are in it.
    pub seq: u64,
    /// What it is made by and of. Whoever looks for another key does not find it.
    pub key: String,
    /// The chunks that it needs besides.
    pub chunks: Vec<String>,
    /// Of the bytes.
    pub digest: Digest,
    pub body: Vec<u8>,
}

/// What is known of a checkpoint without reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointMark {
    pub seq: u64,
    pub key: String,
    pub chunks: Vec<String>,
    /// How long its body is.
    pub bytes: u64,
}

/// A part that checkpoints of one run share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointChunk {
    pub run: RunId,
    pub name: String,
    pub bytes: Vec<u8>,
}

/// What one run has added to what its tree has spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingRow {
    pub run: RunId,
    /// The first run of the tree, which may be this one.
    pub root: RunId,
    /// How many of its records are counted.
    pub seq: u64,
    /// As JSON.
    pub body: String,
}

#[derive(Clone, Debug)]
pub enum CheckpointWrite {
    /// Replaces one of the same run and place; chunks that are there stay as they are. Of a run that is unknown, or whose log
    /// is gone, nothing is kept.
    Put { checkpoint: Checkpoint, chunks: Vec<CheckpointChunk> },
    /// What is not there is gone already.
    Drop { run: RunId, seqs: Vec<u64>, chunks: Vec<String> },
}

impl CheckpointWrite {
    pub fn run(&self) -> &RunId {
        match self {
            Self::Put { checkpoint, .. } => &checkpoint.run,
            Self::Drop { run, .. } => run,
        }
    }

    /// About how much there is to write.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Put { checkpoint, chunks } => {
                let names: usize = checkpoint.chunks.iter().map(String::len).sum();
                checkpoint.body.len() + names + chunks.iter().map(|chunk| chunk.bytes.len()).sum::<usize>()
            }
            Self::Drop { chunks, .. } => chunks.iter().map(String::len).sum(),
        }
    }
}
