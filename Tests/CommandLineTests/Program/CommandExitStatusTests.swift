import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Exit statuses")
struct CommandExitStatusTests {
  static let contract: [(CommandExitStatus, Int32, String)] = [
    (.ok, 0, "ok"), (.failed, 1, "failed"), (.differs, 2, "differs"), (.partial, 3, "partial"),
    (.noMatch, 4, "no-match"), (.doneBut, 5, "done-but"), (.notFound, 10, "not-found"), (.busy, 11, "busy"),
    (.wrongPassword, 12, "wrong-password"), (.needsPassword, 12, "needs-password"), (.damaged, 13, "damaged"),
    (.refused, 14, "refused"),
    (.locked, 15, "locked"), (.stalePlan, 16, "stale-plan"), (.usage, 64, "usage"), (.signal(2), 130, "signal"),
    (.signal(15), 143, "signal"),
  ]

  @Test("Exit codes and names do not change", arguments: contract)
  func numbers(status: CommandExitStatus, code: Int32, id: String) {
    #expect(status.code == code)
    #expect(status.id == id)
  }

  @Test("The categories of library errors have the documented exit statuses", arguments: ErrorCategory.allCases)
  func categories(category: ErrorCategory) {
    #expect(CommandExitStatus(category).id == category.rawValue)
  }

  @Test("No two statuses in `fixed` have the same code")
  func distinct() {
    #expect(Set(CommandExitStatus.fixed.map(\.code)).count == CommandExitStatus.fixed.count)
  }
}
