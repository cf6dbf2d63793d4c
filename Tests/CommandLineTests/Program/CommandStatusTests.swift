import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Exit codes, which scripts switch on")
struct CommandStatusTests {
  static let contract: [(CommandStatus, Int32, String)] = [
    (.ok, 0, "ok"), (.failed, 1, "failed"), (.differs, 2, "differs"), (.partial, 3, "partial"),
    (.noMatch, 4, "no-match"), (.doneBut, 5, "done-but"), (.notFound, 10, "not-found"), (.busy, 11, "busy"),
    (.wrongPassword, 12, "wrong-password"), (.needsPassword, 12, "needs-password"), (.damaged, 13, "damaged"),
    (.refused, 14, "refused"),
    (.locked, 15, "locked"), (.stalePlan, 16, "stale-plan"), (.usage, 64, "usage"), (.signal(2), 130, "signal"),
    (.signal(15), 143, "signal"),
  ]

  @Test("keep their number and their name", arguments: contract)
  func numbers(status: CommandStatus, code: Int32, id: String) {
    #expect(status.code == code)
    #expect(status.id == id)
  }

  @Test("are the same word for an error of the library", arguments: ErrorCategory.allCases)
  func categories(category: ErrorCategory) {
    #expect(CommandStatus(category).id == category.rawValue)
  }

  @Test("no two share a number")
  func distinct() {
    #expect(Set(CommandStatus.fixed.map(\.code)).count == CommandStatus.fixed.count)
  }
}
