import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Testing

@testable import VirtualDevice

@Suite("The queue for a device")
struct LockQueueTests {
  /// Returns the device with a clock that runs a closure while it waits.
  private func device(
    _ device: VirtualDevice, sleep: @escaping @Sendable (Duration) -> Void = { _ in },
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) -> VirtualDevice {
    var environment = device.environment
    environment.clock = DeviceClock(now: { Phones.now }, sleep: sleep, shouldContinue: shouldContinue)
    return VirtualDevice(name: device.name, directory: device.directory, environment: environment)
  }

  @Test("A waiting process is not overtaken by a later one, even if the device is free")
  func overtaking() throws {
    let phones = try Phones()
    let phone = try phones.create()
    let holder = Locked<DeviceSession?>(try phone.openSession())
    let lateCodes = Locked<[KeyhaulError.Code?]>([])
    let first = device(phone) { _ in
      // The device is free now, and the first process is asleep.
      holder.withLock { session in
        session?.invalidate()
        session = nil
      }
      lateCodes.withLock { codes in
        guard codes.isEmpty else { return }
        codes.append(try? code { try self.device(phone).openAndClose(.writing, wait: .milliseconds(900)) })
        codes.append(try? code { try self.device(phone).openAndClose(.reading, wait: .milliseconds(900)) })
      }
    }
    let session = try first.openSession(.writing, verb: "first", wait: .seconds(5))
    #expect(lateCodes.withLock { $0 } == [.deviceBusy, .deviceBusy])
    session.invalidate()
    #expect(try code { try self.device(phone).openAndClose(.writing, wait: .seconds(1)) } == nil)
  }

  @Test("A process that was stopped while waiting loses its turn after a second")
  func stopped() throws {
    let phones = try Phones()
    let phone = try phones.create()
    let ticket = try LockQueueTicket.acquire(phone.directory, device: "phone", DeviceFiles())
    let isAcquired = ticket != nil
    #expect(isAcquired)
    let slept = Locked(Duration.zero)
    let waiting = device(phone) { duration in slept.withLock { $0 += duration } }
    #expect(try code { try waiting.openAndClose(.writing, wait: .seconds(3)) } == nil)
    #expect(slept.withLock { $0 } >= .milliseconds(900) && slept.withLock { $0 } <= .milliseconds(1100))
    // A process that does not wait ignores the queue.
    #expect(try code { _ = try phone.openSession(.writing) } == nil)
    _ = consume ticket
  }

  @Test("A process waits no longer than its limit")
  func waitLimit() throws {
    let phones = try Phones()
    let phone = try phones.create()
    let holder = try phone.openSession()
    defer { holder.invalidate() }
    let slept = Locked(Duration.zero)
    let waiting = device(phone) { duration in slept.withLock { $0 += duration } }
    #expect(try code { try waiting.openAndClose(.writing, wait: .seconds(7)) } == .deviceBusy)
    #expect(slept.withLock { $0 } <= .seconds(7) && slept.withLock { $0 } > .seconds(6))
  }

  @Test("A process stops waiting on request")
  func stoppedWaiting() throws {
    let phones = try Phones()
    let phone = try phones.create()
    let holder = try phone.openSession()
    defer { holder.invalidate() }
    let sleepCount = Locked(0)
    let stopping = device(
      phone, sleep: { _ in sleepCount.withLock { $0 += 1 } }, shouldContinue: { sleepCount.withLock { $0 } < 3 })
    #expect(try code { try stopping.openAndClose(.writing, wait: .seconds(3600)) } == .deviceBusy)
    #expect(sleepCount.withLock { $0 } == 3)
  }

  @Test("A waiting process gets a device that two others constantly release and acquire again")
  func starvation() throws {
    let phones = try Phones()
    // All processes must really sleep. Otherwise the first one loses its turn at once.
    let phone = device(try phones.create(), sleep: DeviceClock.system.sleep)
    let checkCount = Locked(0)
    let waiting = device(phone) { duration in
      checkCount.withLock { $0 += 1 }
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
      checkCount.withLock { $0 = 0 }
      try waiting.openSession(.writing, verb: "patient", wait: .seconds(300)).invalidate()
      // With three processes, chance may delay one several times but not a hundred times. The test counts the checks of
      // the waiting process, because the others may use the device often while a busy machine suspends it.
      #expect(checkCount.withLock { $0 } < 100)
    }
    shouldStop.withLock { $0 = true }
    for _ in 0..<2 { finishedThreads.wait() }
  }
}

extension VirtualDevice {
  fileprivate func openAndClose(_ access: DeviceAccess, wait: Duration) throws {
    try openSession(access, verb: "test", wait: wait).invalidate()
  }
}
