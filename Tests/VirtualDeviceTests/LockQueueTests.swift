import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Testing

@testable import VirtualDevice

@Suite("The queue of processes that wait for a device")
struct LockQueueTests {
  /// Returns a device with the same directory and another clock. The copy stands for another process.
  ///
  /// - Parameters:
  ///   - device: The device.
  ///   - sleep: Called instead of sleeping when the copy waits for the device.
  ///   - shouldContinue: Returns whether the copy still waits.
  private func deviceCopy(
    of device: VirtualDevice, sleep: @escaping @Sendable (Duration) -> Void = { _ in },
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) -> VirtualDevice {
    var environment = device.environment
    environment.clock = DeviceClock(now: { Phones.now }, sleep: sleep, shouldContinue: shouldContinue)
    return VirtualDevice(name: device.name, directory: device.directory, environment: environment)
  }

  @Test("A waiting process is not overtaken by a later one, even if the device is free")
  func laterProcess() throws {
    let phones = try Phones()
    let phone = try phones.create()
    let holder = Locked<DeviceSession?>(try phone.openSession())
    let laterCodes = Locked<[KeyhaulError.Code?]>([])
    let first = deviceCopy(of: phone) { _ in
      // While the first process sleeps, the holder releases the device. Two later processes then try to get it.
      holder.withLock { session in
        session?.invalidate()
        session = nil
      }
      laterCodes.withLock { codes in
        guard codes.isEmpty else { return }
        // They wait less than a second, after which the first process would lose its turn.
        codes.append(try? code { try self.deviceCopy(of: phone).openAndClose(.writing, wait: .milliseconds(900)) })
        codes.append(try? code { try self.deviceCopy(of: phone).openAndClose(.reading, wait: .milliseconds(900)) })
      }
    }
    let session = try first.openSession(.writing, verb: "first", wait: .seconds(5))
    #expect(laterCodes.withLock { $0 } == [.deviceBusy, .deviceBusy])
    session.invalidate()
    #expect(try code { try self.deviceCopy(of: phone).openAndClose(.writing, wait: .seconds(1)) } == nil)
  }

  @Test("A process that was stopped while waiting loses its turn after a second")
  func stoppedProcess() throws {
    let phones = try Phones()
    let phone = try phones.create()
    // A ticket that nobody uses stands for the first process, which was stopped.
    let ticket = try LockQueueTicket.acquire(phone.directory, device: "phone", DeviceFiles())
    // `#expect` cannot capture the ticket, because it is not copyable.
    let isAcquired = ticket != nil
    #expect(isAcquired)
    let sleptDuration = Locked(Duration.zero)
    let waiting = deviceCopy(of: phone) { duration in sleptDuration.withLock { $0 += duration } }
    #expect(try code { try waiting.openAndClose(.writing, wait: .seconds(3)) } == nil)
    #expect(
      sleptDuration.withLock { $0 } >= .milliseconds(900) && sleptDuration.withLock { $0 } <= .milliseconds(1100))
    // A process that does not wait ignores the queue.
    #expect(try code { _ = try phone.openSession(.writing) } == nil)
    // The ticket must exist until here.
    _ = consume ticket
  }

  @Test("A process waits no longer than its limit")
  func waitLimit() throws {
    let phones = try Phones()
    let phone = try phones.create()
    let holder = try phone.openSession()
    defer { holder.invalidate() }
    let sleptDuration = Locked(Duration.zero)
    let waiting = deviceCopy(of: phone) { duration in sleptDuration.withLock { $0 += duration } }
    #expect(try code { try waiting.openAndClose(.writing, wait: .seconds(7)) } == .deviceBusy)
    #expect(sleptDuration.withLock { $0 } <= .seconds(7) && sleptDuration.withLock { $0 } > .seconds(6))
  }

  @Test("A process whose wait is stopped reports a busy device")
  func endedWait() throws {
    let phones = try Phones()
    let phone = try phones.create()
    let holder = try phone.openSession()
    defer { holder.invalidate() }
    let sleepCount = Locked(0)
    let stopping = deviceCopy(
      of: phone, sleep: { _ in sleepCount.withLock { $0 += 1 } }, shouldContinue: { sleepCount.withLock { $0 } < 3 })
    #expect(try code { try stopping.openAndClose(.writing, wait: .seconds(3600)) } == .deviceBusy)
    #expect(sleepCount.withLock { $0 } == 3)
  }

  @Test("A waiting process gets a device that two others constantly release and acquire again")
  func starvation() throws {
    let phones = try Phones()
    // All clocks really sleep. Without sleeping, the requested pauses would soon add up to a second, and the first
    // process would lose its turn.
    let phone = deviceCopy(of: try phones.create(), sleep: DeviceClock.system.sleep)
    let pauseCount = Locked(0)
    let waiting = deviceCopy(of: phone) { duration in
      pauseCount.withLock { $0 += 1 }
      DeviceClock.system.sleep(duration)
    }
    let shouldStop = Locked(false)
    let finishedThreads = DispatchSemaphore(value: 0)
    for _ in 0..<2 {
      Thread {
        while !shouldStop.withLock({ $0 }) {
          try? phone.openSession(.writing, verb: "greedy", wait: .seconds(60)).invalidate()
        }
        finishedThreads.signal()
      }.start()
    }
    for _ in 0..<10 {
      pauseCount.withLock { $0 = 0 }
      try waiting.openSession(.writing, verb: "patient", wait: .seconds(300)).invalidate()
      // With three processes, chance may make one pause several times, but not a hundred times. The test does not count
      // how often the others get the device, because a busy machine may suspend this thread for long.
      #expect(pauseCount.withLock { $0 } < 100)
    }
    shouldStop.withLock { $0 = true }
    for _ in 0..<2 { finishedThreads.wait() }
  }
}

extension VirtualDevice {
  /// Opens a session, waiting for at most this time, and closes it.
  fileprivate func openAndClose(_ access: DeviceAccess, wait: Duration) throws {
    try openSession(access, verb: "test", wait: wait).invalidate()
  }
}
