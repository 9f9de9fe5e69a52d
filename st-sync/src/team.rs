//! One process, or several that share the ranks of a trace.

use anyhow::Result;
use st_cli::transport::{self, Gone, Transport};
use st_match::graph::Links;
use st_model::varint;

use crate::pack::Words;

/// This process among others, or alone.
pub struct Team<'a> {
    /// How its graph continues in the others.
    pub links: Links,
    /// The others; `None` alone.
    pub job: Option<&'a mut dyn Transport>,
}

impl std::fmt::Debug for Team<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let job = self.job.as_ref().map(|job| (job.rank(), job.size()));
        f.debug_struct("Team").field("job", &job).finish_non_exhaustive()
    }
}

impl<'a> Team<'a> {
    /// One process.
    #[must_use]
    pub fn alone() -> Self {
        Self { links: Links::default(), job: None }
    }

    /// One of several; links are not known yet.
    #[must_use]
    pub fn of(job: &'a mut dyn Transport) -> Self {
        Self { links: Links::default(), job: Some(job) }
    }

    /// Number of this process.
    #[must_use]
    pub fn me(&self) -> usize {
        self.job.as_ref().map_or(0, |job| job.rank())
    }

    /// Number of processes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.job.as_ref().map_or(1, |job| job.size())
    }

    /// Whether this process has a stream of the graph.
    #[must_use]
    pub fn has(&self, stream: usize) -> bool {
        self.links.owners.get(stream).is_none_or(|p| *p as usize == self.me())
    }

    /// What every process has to say, by process.
    ///
    /// # Errors
    ///
    /// If one is gone.
    pub fn all(&mut self, mine: &[i64]) -> Result<Vec<Vec<i64>>, Gone> {
        let Some(job) = &mut self.job else { return Ok(vec![mine.to_vec()]) };
        let mut bytes = Vec::new();
        put_words(&mut bytes, mine);
        let all = transport::all(*job, &bytes)?;
        all.iter().map(|b| get_words(b).ok_or(Gone)).collect()
    }

    /// Sends bytes to each process, and returns what each sent here.
    ///
    /// # Errors
    ///
    /// If one is gone.
    pub fn swap(&mut self, out: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Gone> {
        match &mut self.job {
            Some(job) => transport::swap(*job, out),
            None => Ok(out),
        }
    }

    /// Sends each process the times of its links, by number, and returns those of the links here.
    ///
    /// # Errors
    ///
    /// If one is gone.
    pub fn swap_times(&mut self, out: Vec<Vec<(u32, i64)>>) -> Result<Vec<Vec<(u32, i64)>>, Gone> {
        let Some(job) = &mut self.job else { return Ok(out) };
        let bytes = |times: Vec<(u32, i64)>| {
            let mut bytes = Vec::with_capacity(times.len() * 4);
            put_times(&mut bytes, &times);
            bytes
        };
        let came = transport::swap(*job, out.into_iter().map(bytes).collect())?;
        came.iter().map(|b| get_times(b).ok_or(Gone)).collect()
    }

    /// Hands what every other process has to say to `take` on the first one.
    ///
    /// # Errors
    ///
    /// If one is gone.
    pub(crate) fn gather(&mut self, mine: &[i64], mut take: impl FnMut(&mut Words<'_>)) -> Result<()> {
        let Some(job) = &mut self.job else { return Ok(()) };
        let mut bytes = Vec::new();
        put_words(&mut bytes, mine);
        transport::gather(*job, bytes, |process, bytes| {
            if process > 0 {
                take(&mut Words(get_words(&bytes).ok_or(Gone)?.iter()));
            }
            Ok(())
        })
    }

    /// What the first process has to say, on all of them.
    ///
    /// # Errors
    ///
    /// If one is gone.
    pub(crate) fn tell(&mut self, mine: Vec<i64>) -> Result<Vec<i64>, Gone> {
        let Some(job) = &mut self.job else { return Ok(mine) };
        let mut bytes = Vec::new();
        put_words(&mut bytes, &mine);
        get_words(&transport::tell(*job, bytes)?).ok_or(Gone)
    }

    /// Goes on only if all processes can.
    ///
    /// # Errors
    ///
    /// If one cannot: see [`transport::agree`].
    pub fn agree<T>(&mut self, mine: Result<T>) -> Result<T> {
        match &mut self.job {
            Some(job) => transport::agree(*job, mine),
            None => mine,
        }
    }
}

/// Links and times: each as its distance from the one before.
pub(crate) fn put_times(out: &mut Vec<u8>, times: &[(u32, i64)]) {
    let mut last = (0i64, 0i64);
    for &(link, time) in times {
        varint::put_i64(out, i64::from(link) - last.0);
        varint::put_i64(out, time.wrapping_sub(last.1));
        last = (i64::from(link), time);
    }
}

pub(crate) fn get_times(mut src: &[u8]) -> Option<Vec<(u32, i64)>> {
    let mut times = Vec::new();
    let mut last = (0i64, 0i64);
    while !src.is_empty() {
        last.0 = last.0.wrapping_add(varint::get_i64(&mut src).ok()?);
        last.1 = last.1.wrapping_add(varint::get_i64(&mut src).ok()?);
        times.push((u32::try_from(last.0).ok()?, last.1));
    }
    Some(times)
}

pub(crate) fn put_words(out: &mut Vec<u8>, words: &[i64]) {
    words.iter().for_each(|w| varint::put_i64(out, *w));
}

pub(crate) fn get_words(mut src: &[u8]) -> Option<Vec<i64>> {
    let mut words = Vec::new();
    while !src.is_empty() {
        words.push(varint::get_i64(&mut src).ok()?);
    }
    Some(words)
}
