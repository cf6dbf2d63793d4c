import Foundation
import Testing

@testable import Basics

/// A thread starter that refuses some of the starts.
private final class RefusingStarter: Sendable {
  private let count = Locked(0)
  private let refuses: @Sendable (Int) -> Bool

  /// - Parameter refuses: A closure that returns whether to refuse a start, given its number, counted from 1.
  init(_ refuses: @escaping @Sendable (Int) -> Bool) { self.refuses = refuses }

  var startCount: Int { count.withLock { $0 } }

  func start(_ work: @escaping @Sendable () -> Void, _ ended: @escaping @Sendable () -> Void) -> Bool {
    let number = count.withLock {
      $0 += 1
      return $0
    }
    return !refuses(number) && SecureThread.start(work, ended: ended)
  }
}

@Suite("Refused threads")
struct RefusedThreadTests {
  private struct Refusal: Error, Equatable { let number: Int }

  @Test("A parallel map delivers all results in order if some or all threads are refused", arguments: 0...5)
  func parallelMap(firstRefused: Int) {
    // Starts are counted from 1, up to the number of jobs. With 0, either no start is refused or all are.
    for refusesOnlyOne in [true, false] {
      let starter = RefusingStarter { refusesOnlyOne ? $0 == firstRefused : $0 >= firstRefused }
      var element = 0
      var delivered: [Int] = []
      let isComplete = ParallelMap.run(
        jobs: 4, startThread: starter.start,
        next: {
          element += 1
          return element <= 100 ? element : nil
        }, work: { (number: Int) in number * 3 }, deliver: { delivered.append($0) })
      #expect(isComplete)
      #expect(delivered == (1...100).map { $0 * 3 })
      #expect(starter.startCount == 4)
    }
  }

  @Test("A parallel map without threads works on its caller's thread, and can be stopped")
  func callersThread() {
    let caller = ObjectIdentifier(Thread.current)
    var element = 0
    var otherThreadCount = 0
    var deliveredCount = 0
    let isComplete = ParallelMap.run(
      jobs: 3, startThread: { _, _ in false },
      next: {
        element += 1
        return element
      }, shouldContinue: { deliveredCount < 20 },
      work: { (_: Int) in ObjectIdentifier(Thread.current) },
      deliver: {
        deliveredCount += 1
        if $0 != caller { otherThreadCount += 1 }
      })
    #expect(!isComplete && deliveredCount == 20 && otherThreadCount == 0)
  }

  @Test("A parallel map without threads throws the error of the first element that failed")
  func failingWork() {
    var element = 0
    var delivered: [Int] = []
    let failure = #expect(throws: Refusal.self) {
      try ParallelMap.run(
        jobs: 3, startThread: { _, _ in false },
        next: { () throws(Refusal) in
          element += 1
          return element <= 50 ? element : nil
        },
        work: { (number: Int) throws(Refusal) in
          if number >= 7 { throw Refusal(number: number) }
          return number
        }, deliver: { (number) throws(Refusal) in delivered.append(number) })
    }
    #expect(failure == Refusal(number: 7))
    #expect(delivered == [1, 2, 3, 4, 5, 6])
  }

  @Test("A background thread does not start if the system refuses it")
  func backgroundThread() {
    let hasBegun = Locked(false)
    let refusing: SecureThread.Starter = { _, _ in false }
    let thread = BackgroundThread(startThread: refusing) { _ in hasBegun.withLock { $0 = true } }
    #expect(thread == nil)
    #expect(!hasBegun.withLock { $0 })
  }

  @Test("Detached work is carried out")
  func detached() {
    let isDone = DispatchSemaphore(value: 0)
    SecureThread.detach { isDone.signal() }
    isDone.wait()
  }
}
