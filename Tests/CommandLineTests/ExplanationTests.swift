import Testing

@testable import keyhaul

@Suite("What explain can say")
struct ExplanationTests {
  @Test(
    "there is a page for every reason that a report gives",
    arguments: [
      "device-bound", "backup-not-encrypted", "passcode-only", "hardware-key", "system-bound", "needs-authentication",
      "shared-group", "app-clip", "deleted", "no-class-key", "tag-mismatch", "malformed", "unsupported-version",
      "keybag-mismatch", "inferred-synchronizable",
    ])
  func reasons(id: String) throws {
    let page = try Explain.explanation(of: id)
    #expect(page.id == id)
    #expect(page.source?.isEmpty == false)
  }

  @Test("there is a page for every exit code, by its number and by its name", arguments: CommandStatus.fixed)
  func codes(status: CommandStatus) throws {
    #expect(try Explain.explanation(of: "\(status.code)").id == status.id)
    #expect(try Explain.explanation(of: status.id.uppercased()).code == status.code)
  }

  @Test("a code over 128 is a signal", arguments: ["130", "143", "signal"])
  func signals(topic: String) throws {
    #expect(try Explain.explanation(of: topic).id == "signal")
  }

  @Test("no two pages have one name, and every page says everything")
  func complete() {
    #expect(Set(Explanation.all.map(\.id)).count == Explanation.all.count)
    for page in Explanation.all {
      for text in [page.rule, page.effect, page.advice] { #expect(text.hasSuffix(".")) }
      #expect(!page.title.isEmpty && !page.title.hasSuffix("."))
    }
  }

  @Test(
    "a topic that there is not gets the near one", arguments: [("device-bond", "device-bound"), ("lockd", "locked")])
  func near(topic: String, id: String) {
    #expect(ending { _ = try Explain.explanation(of: topic) }?.advice == "keyhaul explain \(id)")
  }
}
