import Foundation
import Testing

@testable import Basics

@Suite("Parallel maps")
struct ParallelMapTests {
  /// A counter for several threads.
  private final class Counter: @unchecked Sendable {
    private let lock = NSLock()
    private var value = 0
    private var highest = 0

    func change(by amount: Int) {
      lock.lock()
      value += amount
      highest = max(highest, value)
      lock.unlock()
    }

    var current: Int {
      lock.lock()
      defer { lock.unlock() }
      return value
    }

    var maximum: Int {
      lock.lock()
      defer { lock.unlock() }
      return highest
    }
  }

  private struct Refusal: Error, Equatable { let number: Int }

  /// The numbers from 0 to below `count`, one at a time.
  private struct Numbers {
    var returnedCount = 0
    let count: Int

    mutating func next() -> Int? {
      guard returnedCount < count else { return nil }
      returnedCount += 1
      return returnedCount - 1
    }
  }

  @Test("Results are delivered in the order of the elements", arguments: [1, 2, 4, 9])
  func order(jobs: Int) {
    var numbers = Numbers(count: 200)
    var delivered: [Int] = []
    let isComplete = ParallelMap.run(
      jobs: jobs, next: { numbers.next() },
      work: { number in
        if number.isMultiple(of: 7) { Thread.sleep(forTimeInterval: 0.002) }
        return number * 2
      }, deliver: { delivered.append($0) })
    #expect(isComplete)
    #expect(delivered == (0..<200).map { $0 * 2 })
  }

  /// Runs a parallel map of 20 elements, and returns how many of them are processed on the calling thread.
  private static func countElementsOnCallingThread() -> Int {
    let caller = ObjectIdentifier(Thread.current)
    var numbers = Numbers(count: 20)
    var count = 0
    ParallelMap.run(
      jobs: 4, next: { numbers.next() }, work: { (_: Int) in ObjectIdentifier(Thread.current) },
      deliver: { if $0 == caller { count += 1 } })
    return count
  }

  @Test("A parallel map within a job works on the job's thread")
  func nested() {
    var numbers = Numbers(count: 6)
    var delivered: [Int] = []
    ParallelMap.run(
      jobs: 2, next: { numbers.next() }, work: { (_: Int) in Self.countElementsOnCallingThread() },
      deliver: { delivered.append($0) })
    #expect(delivered == [20, 20, 20, 20, 20, 20])
  }

  @Test("A parallel map within a single job works on the job's thread, which is the caller's")
  func nestedInSingleJob() {
    var numbers = Numbers(count: 1)
    var delivered: [Int] = []
    let caller = ObjectIdentifier(Thread.current)
    ParallelMap.run(
      jobs: 1, next: { numbers.next() },
      work: { (_: Int) in
        ObjectIdentifier(Thread.current) == caller ? Self.countElementsOnCallingThread() : 0
      }, deliver: { delivered.append($0) })
    #expect(delivered == [20])
  }

  @Test("After a single job, even a failed one, the caller's thread no longer counts as a job")
  func afterSingleJob() {
    var single = Numbers(count: 1)
    #expect(throws: Refusal(number: 0)) {
      try ParallelMap.run(
        jobs: 1, next: { () throws(Refusal) in single.next() },
        work: { (number: Int) throws(Refusal) -> Int in throw Refusal(number: number) },
        deliver: { (_: Int) throws(Refusal) in })
    }
    #expect(Self.countElementsOnCallingThread() == 0)
  }

  @Test("Running and waiting elements are limited by the number of jobs")
  func bound() {
    let running = Counter()
    var numbers = Numbers(count: 60)
    var deliveredCount = 0
    // The most elements that were requested and not yet delivered.
    var maximumLead = 0
    ParallelMap.run(
      jobs: 3,
      next: {
        let number = numbers.next()
        maximumLead = max(maximumLead, numbers.returnedCount - deliveredCount)
        return number
      },
      work: { (number: Int) in
        running.change(by: 1)
        Thread.sleep(forTimeInterval: 0.001)
        running.change(by: -1)
        return number
      }, deliver: { _ in deliveredCount += 1 })
    #expect(running.maximum <= 3)
    #expect(running.current == 0)
    #expect(maximumLead <= 3 * ParallelMap.maximumLeadPerJob)
  }

  @Test("Two elements that wait for each other are both processed")
  func together() {
    let condition = NSCondition()
    let running = Counter()
    var numbers = Numbers(count: 2)
    var areBothRunning: [Bool] = []
    ParallelMap.run(
      jobs: 2, next: { numbers.next() },
      work: { (_: Int) in
        condition.lock()
        defer { condition.unlock() }
        running.change(by: 1)
        condition.broadcast()
        let end = Date(timeIntervalSinceNow: 60)
        while running.current < 2, condition.wait(until: end) {}
        return running.current == 2
      }, deliver: { areBothRunning.append($0) })
    #expect(areBothRunning == [true, true])
  }

  @Test("Cancellation starts no new work and delivers no running results", arguments: [1, 4])
  func cancellation(jobs: Int) {
    let begun = Counter()
    var numbers = Numbers(count: 1_000_000)
    var delivered: [Int] = []
    let isComplete = ParallelMap.run(
      jobs: jobs, next: { numbers.next() }, shouldContinue: { delivered.count < 10 },
      work: { number in
        begun.change(by: 1)
        return number
      }, deliver: { delivered.append($0) })
    #expect(!isComplete)
    #expect(delivered == Array(0..<10))
    let begunCount = begun.current
    #expect(begunCount <= 10 + jobs * ParallelMap.maximumLeadPerJob)
    Thread.sleep(forTimeInterval: 0.02)
    #expect(begun.current == begunCount)
  }

  @Test("The error of the first failed element is thrown after all earlier results were delivered", arguments: [1, 5])
  func failingWork(jobs: Int) {
    var numbers = Numbers(count: 100)
    var delivered: [Int] = []
    let failure = #expect(throws: Refusal.self) {
      try ParallelMap.run(
        jobs: jobs, next: { () throws(Refusal) in numbers.next() },
        work: { (number: Int) throws(Refusal) in
          // The later element fails first.
          if number == 20 { Thread.sleep(forTimeInterval: 0.01) }
          if number == 20 || number == 21 { throw Refusal(number: number) }
          return number
        }, deliver: { (number) throws(Refusal) in delivered.append(number) })
    }
    #expect(failure == Refusal(number: 20))
    #expect(delivered == Array(0..<20))
  }

  @Test(
    "Errors of delivering a result or finding the next element are thrown after all jobs have ended", arguments: [1, 3])
  func failingCaller(jobs: Int) {
    let running = Counter()
    func run(failingAt index: Int, whileFindingNext failsInNext: Bool) throws(Refusal) {
      var numbers = Numbers(count: 50)
      try ParallelMap.run(
        jobs: jobs,
        next: { () throws(Refusal) in
          if failsInNext, numbers.returnedCount == index { throw Refusal(number: index) }
          return numbers.next()
        },
        work: { (number: Int) throws(Refusal) in
          running.change(by: 1)
          Thread.sleep(forTimeInterval: 0.001)
          running.change(by: -1)
          return number
        },
        deliver: { (number) throws(Refusal) in if !failsInNext, number == index { throw Refusal(number: number) } })
    }
    #expect(throws: Refusal(number: 4)) { try run(failingAt: 4, whileFindingNext: false) }
    #expect(running.current == 0)
    #expect(throws: Refusal(number: 6)) { try run(failingAt: 6, whileFindingNext: true) }
    #expect(running.current == 0)
  }

  @Test("A parallel map without elements succeeds immediately", arguments: [1, 4])
  func nothing(jobs: Int) {
    let isComplete = ParallelMap.run(
      jobs: jobs, next: { nil as Int? }, work: { $0 }, deliver: { _ in Issue.record("a result") })
    #expect(isComplete)
  }
}

@Suite("Single-flight cache")
struct SingleFlightCacheTests {
  private struct Refusal: Error {}

  @Test("The first request computes a value while the others wait")
  func once() {
    let values = SingleFlightCache<Int, Int>(capacity: 100)
    var returnedCount = 0
    var sum = 0
    ParallelMap.run(
      jobs: 4,
      next: {
        returnedCount += 1
        return returnedCount <= 100 ? returnedCount % 5 : nil
      },
      work: { (key: Int) in
        values.value(for: key) {
          Thread.sleep(forTimeInterval: 0.002)
          return key * 10
        }
      }, deliver: { sum += $0 })
    #expect(values.count == 5)
    #expect(sum == 20 * (0 + 10 + 20 + 30 + 40))
  }

  @Test("A failed computation is tried again by the next request")
  func failure() throws {
    let values = SingleFlightCache<Int, Int>(capacity: 2)
    #expect(throws: Refusal.self) { try values.value(for: 1) { () throws(Refusal) in throw Refusal() } }
    #expect(values.value(for: 1) { 11 } == 11)
    #expect(values.count == 1)
  }

  @Test("The oldest value is removed if the capacity is exceeded")
  func capacity() {
    let values = SingleFlightCache<Int, Int>(capacity: 2)
    for key in [1, 2, 3] { #expect(values.value(for: key) { key } == key) }
    // A negative value shows that the key was computed again.
    #expect(values.value(for: 3) { -3 } == 3)
    #expect(values.value(for: 2) { -2 } == 2)
    #expect(values.value(for: 1) { -1 } == -1)
    // The count is the number of computations: three at first, and one after the removal.
    #expect(values.count == 4)
  }
}
