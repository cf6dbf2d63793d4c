import Foundation
import Testing

@testable import Basics

@Suite("Work beside its owner")
struct SideWorkTests {
  @Test("is done on a thread of its own while its owner does something else")
  func beside() {
    let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let work = SideWork { _ in
      begun.signal()
      goOn.wait()
    }
    begun.wait()
    goOn.signal()
    withExtendedLifetime(work) {}
  }

  @Test("ends where its owner does not want it any more, and its owner waits for that")
  func unwanted() {
    let ended = OnceEach<Int, Int>(capacity: 1)
    do {
      let begun = DispatchSemaphore(value: 0)
      let work = SideWork { isWanted in
        begun.signal()
        while isWanted(0.001) {}
        _ = ended.value(for: 1) { 1 }
      }
      begun.wait()
      withExtendedLifetime(work) {}
    }
    #expect(ended.count == 1)
  }
}
