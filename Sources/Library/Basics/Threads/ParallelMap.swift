import Foundation

/// Work on many things at once, whose results come in the order of the things.
///
/// What runs at once is bounded, and so is what waits: however many things there are, the memory that is taken depends on
/// the number of jobs alone.
package enum ParallelMap {
  /// How many jobs there are where nobody says it: one for each core that this process may use.
  package static var standardJobCount: Int { max(1, ProcessInfo.processInfo.activeProcessorCount) }

  /// How far work may be ahead of what was delivered, in things for each job: one slow thing does not stop the others.
  package static let leadOfJob = 4

  /// How long is waited for a result before it is asked whether to go on, in seconds.
  private static let patience = 0.05

  /// Works on each thing that `next` gives, with at most `jobs` of them at once, and delivers the results in their order.
  ///
  /// Where a job asks for this itself, it does the work alone, and so does a single job on its caller's thread: what runs at once
  /// stays bounded by the jobs that there are.
  ///
  /// `next`, `shouldContinue` and `deliver` are called on the caller's thread, one at a time; `work` on others, but for a
  /// single job, which has none. All calls have ended when this returns or throws. If the system refuses a thread, the
  /// running jobs do the work. If no job runs, the caller's thread does it.
  ///
  /// - Parameters:
  ///   - jobs: At least 1.
  ///   - startThread: Starts the thread of a job.
  ///   - next: The things, one after the other; `nil` after the last.
  ///   - shouldContinue: Asked between things and several times a second. Where it answers `false` nothing new is begun;
  ///     what runs has to look for itself, and what it comes to is not delivered.
  ///   - work: What is done with one thing.
  ///   - deliver: Takes one result.
  /// - Returns: Whether everything was delivered; `false` where `shouldContinue` ended it.
  /// - Throws: What `next`, `deliver` or the work on the first thing that failed throws; everything before it was
  ///   delivered, and nothing behind it is.
  @discardableResult
  package static func run<Input: Sendable, Output: Sendable, Failure: Error>(
    jobs: Int, startThread: WorkThread.Starter = WorkThread.start, next: () throws(Failure) -> Input?,
    shouldContinue: () -> Bool = { true },
    work: @escaping @Sendable (Input) throws(Failure) -> Output, deliver: (Output) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    guard jobs > 1, !isJob else {
      while shouldContinue(), let input = try next() {
        let output = try alone { () throws(Failure) in try work(input) }
        guard shouldContinue() else { return false }
        try deliver(output)
      }
      return shouldContinue()
    }
    let pool = Pool(work: work)
    defer { pool.finish() }
    var (given, delivered, started, isAtEnd) = (0, 0, 0, false)
    while shouldContinue() {
      if !isAtEnd, given - delivered < jobs * leadOfJob {
        if let input = try next() {
          pool.add(input, at: given)
          given += 1
          // A job is begun when there is something for it to do.
          if given <= jobs, pool.startJob(startThread) { started += 1 }
        } else {
          isAtEnd = true
        }
      }
      if isAtEnd, delivered == given { return true }
      let mustWait = isAtEnd || given - delivered == jobs * leadOfJob
      if mustWait, started == 0 { alone { pool.workOnce() } }
      if let result = pool.result(at: delivered, waitingFor: mustWait ? patience : 0) {
        let output = try result.get()
        guard shouldContinue() else { return false }
        delivered += 1
        try deliver(output)
      }
    }
    return false
  }

  private static let jobKey = "keyhaul.job"

  /// Whether the thread that asks does the work of a job.
  private static var isJob: Bool {
    get { Thread.current.threadDictionary[jobKey] != nil }
    set { Thread.current.threadDictionary[jobKey] = newValue ? true : nil }
  }

  /// Does a single job's work on the thread of its caller.
  private static func alone<Output, Failure: Error>(_ work: () throws(Failure) -> Output) throws(Failure) -> Output {
    let wasJob = isJob
    isJob = true
    defer { isJob = wasJob }
    return try work()
  }

  /// What the jobs share. Every stored value is read and written with the lock held.
  private final class Pool<Input: Sendable, Output: Sendable, Failure: Error>: @unchecked Sendable {
    private let changed = NSCondition()
    private let work: @Sendable (Input) throws(Failure) -> Output
    private var waiting: [(place: Int, input: Input)] = []
    private var results: [Int: Result<Output, Failure>] = [:]
    private var jobCount = 0
    private var isFinished = false

    init(work: @escaping @Sendable (Input) throws(Failure) -> Output) { self.work = work }

    /// - Returns: `false` if no thread can be started for the job.
    func startJob(_ startThread: WorkThread.Starter) -> Bool {
      locked { jobCount += 1 }
      let isRunning = startThread { [self] in
        isJob = true
        while let (place, input) = take() { work(on: input, at: place) }
      } _: { [self] in
        locked { jobCount -= 1 }
      }
      if !isRunning { locked { jobCount -= 1 } }
      return isRunning
    }

    /// Works on the next waiting element, on the caller's thread. To be called only if no job runs, because it does not
    /// wait for an element.
    func workOnce() {
      changed.lock()
      let next = waiting.isEmpty ? nil : waiting.removeFirst()
      changed.unlock()
      if let next { work(on: next.input, at: next.place) }
    }

    private func work(on input: Input, at place: Int) {
      let result = Result { () throws(Failure) in try work(input) }
      locked { results[place] = result }
    }

    func add(_ input: Input, at place: Int) { locked { waiting.append((place, input)) } }

    func result(at place: Int, waitingFor seconds: Double) -> Result<Output, Failure>? {
      changed.lock()
      defer { changed.unlock() }
      if results[place] == nil, seconds > 0 { _ = changed.wait(until: Date(timeIntervalSinceNow: seconds)) }
      return results.removeValue(forKey: place)
    }

    /// Begins nothing new and waits for what runs.
    func finish() {
      changed.lock()
      defer { changed.unlock() }
      isFinished = true
      waiting.removeAll()
      changed.broadcast()
      while jobCount > 0 { changed.wait() }
    }

    /// The next thing to work on, waited for; `nil` at the end.
    private func take() -> (place: Int, input: Input)? {
      changed.lock()
      defer { changed.unlock() }
      while waiting.isEmpty, !isFinished { changed.wait() }
      return isFinished || waiting.isEmpty ? nil : waiting.removeFirst()
    }

    private func locked(_ change: () -> Void) {
      changed.lock()
      change()
      changed.broadcast()
      changed.unlock()
    }
  }
}
