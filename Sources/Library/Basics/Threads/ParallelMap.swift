import Foundation

/// Processes elements on several threads and delivers the results in the order of the elements.
///
/// The number of elements in memory is limited for each job, so memory use does not grow with the number of elements.
package enum ParallelMap {
  /// The default number of jobs: one for each core that this process may use.
  package static var standardJobCount: Int { max(1, ProcessInfo.processInfo.activeProcessorCount) }

  /// The number of elements for each job that may be submitted but not delivered. With more than one, a slow element
  /// does not stop the other jobs.
  package static let maximumLeadPerJob = 4

  /// The time to wait for a result before `shouldContinue` is called again, in seconds.
  private static let waitInterval = 0.05

  /// Processes each element that `next` returns, at most `jobs` at once, and delivers the results in order.
  ///
  /// `next`, `shouldContinue` and `deliver` are always called on the caller's thread, one at a time. All calls have ended
  /// when this function returns or throws.
  ///
  /// `work` is called on the threads of the jobs. It is called on the caller's thread in three cases: there is a single
  /// job, the system refuses all threads, or the caller is itself a job. Nested calls therefore start no threads.
  ///
  /// - Parameters:
  ///   - jobs: The number of jobs, at least 1.
  ///   - startThread: Starts the thread of a job.
  ///   - next: Returns the next element, or `nil` after the last.
  ///   - shouldContinue: Called between elements and several times a second. If it returns `false`, no new work starts.
  ///     Running work has to check for itself, and its results are not delivered.
  ///   - work: Processes one element.
  ///   - deliver: Receives one result.
  /// - Returns: Whether everything was delivered; `false` if `shouldContinue` returned `false`.
  /// - Throws: The error of `next`, `deliver`, or the first element whose work failed. All results before it were
  ///   delivered, and none after it.
  @discardableResult
  package static func run<Input: Sendable, Output: Sendable, Failure: Error>(
    jobs: Int, startThread: SecureThread.Starter = SecureThread.start, next: () throws(Failure) -> Input?,
    shouldContinue: () -> Bool = { true },
    work: @escaping @Sendable (Input) throws(Failure) -> Output, deliver: (Output) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    guard jobs > 1, !isJob else {
      return try runOnCallersThread(next: next, shouldContinue: shouldContinue, work: work, deliver: deliver)
    }
    let pool = Pool(work: work)
    defer { pool.finish() }
    var queue = Queue(maximumLead: jobs * maximumLeadPerJob)
    var startedJobCount = 0
    while shouldContinue() {
      if queue.canSubmit {
        if let input = try next() {
          pool.add(input, at: queue.submittedCount)
          queue.submittedCount += 1
          // A job starts only when there is an element for it.
          if queue.submittedCount <= jobs, pool.startJob(startThread) { startedJobCount += 1 }
        } else {
          queue.isAtEnd = true
        }
      }
      if queue.isDone { return true }
      if !queue.canSubmit, startedJobCount == 0 { runAsJob { pool.workOnce() } }
      if let result = pool.result(at: queue.deliveredCount, waitingFor: queue.canSubmit ? 0 : waitInterval) {
        let output = try result.get()
        guard shouldContinue() else { return false }
        queue.deliveredCount += 1
        try deliver(output)
      }
    }
    return false
  }

  /// The numbers of elements that were submitted to the jobs and delivered.
  private struct Queue {
    /// The maximum number of elements that are submitted but not delivered.
    let maximumLead: Int
    var submittedCount = 0
    var deliveredCount = 0
    /// Whether there are no more elements to submit.
    var isAtEnd = false

    var canSubmit: Bool { !isAtEnd && submittedCount - deliveredCount < maximumLead }
    var isDone: Bool { isAtEnd && deliveredCount == submittedCount }
  }

  /// Processes one element after the other, as `run` does with a single job.
  private static func runOnCallersThread<Input, Output, Failure: Error>(
    next: () throws(Failure) -> Input?, shouldContinue: () -> Bool, work: (Input) throws(Failure) -> Output,
    deliver: (Output) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    while shouldContinue(), let input = try next() {
      let output = try runAsJob { () throws(Failure) in try work(input) }
      guard shouldContinue() else { return false }
      try deliver(output)
    }
    return shouldContinue()
  }

  private static let jobKey = "keyhaul.job"

  /// Whether the current thread runs a job.
  private static var isJob: Bool {
    get { Thread.current.threadDictionary[jobKey] != nil }
    set { Thread.current.threadDictionary[jobKey] = newValue ? true : nil }
  }

  /// Runs work as a job on the caller's thread.
  private static func runAsJob<Output, Failure: Error>(_ work: () throws(Failure) -> Output) throws(Failure) -> Output {
    let wasJob = isJob
    isJob = true
    defer { isJob = wasJob }
    return try work()
  }

  /// The state that the jobs share. All stored properties are accessed only with the lock held.
  private final class Pool<Input: Sendable, Output: Sendable, Failure: Error>: @unchecked Sendable {
    private let condition = NSCondition()
    private let work: @Sendable (Input) throws(Failure) -> Output
    private var waitingElements: [(index: Int, input: Input)] = []
    private var results: [Int: Result<Output, Failure>] = [:]
    private var jobCount = 0
    private var isFinished = false

    init(work: @escaping @Sendable (Input) throws(Failure) -> Output) { self.work = work }

    /// Starts a job.
    ///
    /// - Returns: `false` if no thread can be started for the job.
    func startJob(_ startThread: SecureThread.Starter) -> Bool {
      locked { jobCount += 1 }
      let isRunning = startThread { [self] in
        isJob = true
        while let (index, input) = nextWaitingElement() { work(on: input, at: index) }
      } _: { [self] in
        locked { jobCount -= 1 }
      }
      if !isRunning { locked { jobCount -= 1 } }
      return isRunning
    }

    /// Processes the next waiting element on the caller's thread. To be called only if no job runs, because it does not
    /// wait for an element.
    func workOnce() {
      condition.lock()
      let element = waitingElements.isEmpty ? nil : waitingElements.removeFirst()
      condition.unlock()
      if let element { work(on: element.input, at: element.index) }
    }

    private func work(on input: Input, at index: Int) {
      let result = Result { () throws(Failure) in try work(input) }
      locked { results[index] = result }
    }

    func add(_ input: Input, at index: Int) { locked { waitingElements.append((index, input)) } }

    func result(at index: Int, waitingFor seconds: Double) -> Result<Output, Failure>? {
      condition.lock()
      defer { condition.unlock() }
      if results[index] == nil, seconds > 0 { _ = condition.wait(until: Date(timeIntervalSinceNow: seconds)) }
      return results.removeValue(forKey: index)
    }

    /// Drops the waiting elements, and waits until all jobs have ended.
    func finish() {
      condition.lock()
      defer { condition.unlock() }
      isFinished = true
      waitingElements.removeAll()
      condition.broadcast()
      while jobCount > 0 { condition.wait() }
    }

    /// Waits for the next element and returns it, or `nil` at the end.
    private func nextWaitingElement() -> (index: Int, input: Input)? {
      condition.lock()
      defer { condition.unlock() }
      while waitingElements.isEmpty, !isFinished { condition.wait() }
      return isFinished || waitingElements.isEmpty ? nil : waitingElements.removeFirst()
    }

    private func locked(_ change: () -> Void) {
      condition.lock()
      change()
      condition.broadcast()
      condition.unlock()
    }
  }
}
