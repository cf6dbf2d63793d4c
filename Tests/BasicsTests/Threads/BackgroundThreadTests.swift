import Foundation
import Testing

@testable import Basics

@Suite("Background threads")
struct BackgroundThreadTests {
  /// If the work ran on the calling thread, this test would wait forever.
  @Test("The work runs on a separate thread while its owner does something else")
  func runsConcurrently() {
    let (started, mayFinish) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let work = BackgroundThread { _ in
      started.signal()
      mayFinish.wait()
    }
    started.wait()
    mayFinish.signal()
    withExtendedLifetime(work) {}
  }

  @Test("Releasing the owner stops the work and waits for its end")
  func stopsWhenReleased() {
    let hasEnded = Locked(false)
    do {
      let started = DispatchSemaphore(value: 0)
      let work = BackgroundThread { shouldContinue in
        started.signal()
        while shouldContinue(0.001) {}
        hasEnded.withLock { $0 = true }
      }
      started.wait()
      withExtendedLifetime(work) {}
    }
    let workHasEnded = hasEnded.withLock { $0 }
    #expect(workHasEnded)
  }
}
