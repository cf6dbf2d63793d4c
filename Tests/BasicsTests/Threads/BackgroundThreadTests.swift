import Foundation
import Testing

@testable import Basics

@Suite("Background threads")
struct BackgroundThreadTests {
  @Test("The work runs on a separate thread while its owner does something else")
  func beside() {
    let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let work = BackgroundThread { _ in
      begun.signal()
      goOn.wait()
    }
    begun.wait()
    goOn.signal()
    withExtendedLifetime(work) {}
  }

  @Test("Releasing the owner stops the work and waits for its end")
  func unwanted() {
    let ended = SingleFlightCache<Int, Int>(capacity: 1)
    do {
      let begun = DispatchSemaphore(value: 0)
      let work = BackgroundThread { shouldContinue in
        begun.signal()
        while shouldContinue(0.001) {}
        _ = ended.value(for: 1) { 1 }
      }
      begun.wait()
      withExtendedLifetime(work) {}
    }
    #expect(ended.count == 1)
  }
}
