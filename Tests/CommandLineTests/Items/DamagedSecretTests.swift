import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Exports of dumps with damaged secrets")
struct DamagedSecretTests {
  /// A dump in the format of the tool grapefruit, with two items. The second item's secret is not Base64 text.
  private static let dump = """
    [
      {"clazz": "generic", "service": "plain.example", "account": "anna", "raw": "aHVudGVyMg=="},
      {"clazz": "generic", "service": "damaged.example", "account": "anna", "raw": "{length = 6}"}
    ]
    """

  @Test(
    "An export has every readable item, and exits with 3 because a secret is damaged",
    arguments: ["--format json", "--format csv --reveal", "--format json --reveal"])
  func export(flags: String) throws {
    let sandbox = try DeviceSandbox()
    try Data(Self.dump.utf8).write(to: sandbox.home.appending(path: "dump.json"))
    let outcome = try sandbox.run("keyhaul export dump.json \(flags) -o -")
    #expect(outcome.status == 3, "\(outcome)")
    #expect(outcome.output.contains("plain.example") && !outcome.output.contains("length"), "\(outcome)")
    #expect(outcome.output.contains("hunter2") == flags.contains("--reveal"), "\(outcome)")
    let inspected = try sandbox.run("keyhaul inspect dump.json")
    #expect(inspected.status == outcome.status, "\(inspected)")
  }
}
