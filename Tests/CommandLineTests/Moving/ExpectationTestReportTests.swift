import Foundation
import Testing

@testable import keyhaul

#if canImport(FoundationXML)
  import FoundationXML
#endif

@Suite("Expectations as JUnit XML")
struct ExpectationTestReportTests {
  /// The contents of a JUnit document, read by Foundation's XML parser.
  private final class JUnitReader: NSObject, XMLParserDelegate {
    private(set) var suites: [[String: String]] = []
    private(set) var tests: [[String: String]] = []
    private(set) var failures: [[String: String]] = []
    private(set) var skippedCount = 0
    private(set) var text = ""

    init(_ document: String) throws {
      super.init()
      let parser = XMLParser(data: Data(document.utf8))
      parser.delegate = self
      try #require(parser.parse(), "\(parser.parserError.map { "\($0)" } ?? ""): \(document)")
    }

    func parser(
      _: XMLParser, didStartElement name: String, namespaceURI _: String?, qualifiedName _: String?,
      attributes: [String: String]
    ) {
      switch name {
      case "testsuites", "testsuite": suites.append(attributes)
      case "testcase": tests.append(attributes)
      case "failure": failures.append(attributes)
      case "skipped": skippedCount += 1
      default: Issue.record("an element \(name)")
      }
    }

    func parser(_: XMLParser, foundCharacters text: String) { self.text += text }
  }

  @Test("A plan is one test suite, and expectations for other restores are skipped")
  func plan() throws {
    let expectations = try ExpectationSandbox(
      ExpectationSandbox.fourScenarios
        + #", {"account": "push token", "expect": "migrates"}, {"account": "push token", "expect": "migrates"}"#)
    let outcome = try expectations.check("--format junit")
    #expect(outcome.status == 2, "\(outcome)")
    #expect(outcome.output.hasPrefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"expectations\""))
    let report = try JUnitReader(outcome.output)
    // The element of all suites, the suite of this restore, and the suite of the skipped expectations.
    #expect(report.suites.map { $0["tests"] } == ["6", "4", "2"])
    #expect(report.suites.map { $0["failures"] } == ["2", "2", "0"] && report.skippedCount == 2)
    #expect(report.suites.allSatisfy { $0["errors"] == "0" })
    #expect(report.suites[1]["name"] == "old-phone to new-phone, with a password, to another device")
    #expect(
      report.tests.map { $0["name"] } == [
        "account anna, service chat.example: migrates", "account push token: stays-behind (device-bound)",
        "account push token: migrates", "account push token: migrates #2",
        "account anna, service chat.example: stays-behind (backup-not-encrypted)", "account push token: migrates",
      ])
    #expect(
      report.failures.first?["message"]?.hasPrefix(
        "generic password \"chat.example · push token\": expected migrates, the plan says stays-behind (device-bound")
        == true)
    #expect(report.text.contains("the plan says stays-behind"))
    // The same check results in the same bytes.
    #expect(try expectations.check("--format junit").output == outcome.output)
  }

  @Test("A comparison has one test suite per restore")
  func comparison() throws {
    let report = try JUnitReader(
      try ExpectationSandbox(ExpectationSandbox.fourScenarios).check("--compare --format junit").output)
    // The element of all suites, and the suites of the four restores.
    #expect(report.suites.map { $0["tests"] } == ["7", "2", "2", "1", "2"])
    #expect(report.failures.isEmpty && report.skippedCount == 0)
  }

  @Test("With -o, the XML is saved and lines are printed, and the file is written only if both succeed")
  func file() throws {
    let expectations = try ExpectationSandbox(#"{"account": "push token", "expect": "migrates"}"#)
    let outcome = try expectations.check("--format junit -o results.xml")
    #expect(outcome.status == 2 && outcome.output.hasSuffix("\n0 of 1 expectation met.\n"), "\(outcome)")
    let saved = String(decoding: try expectations.sandbox.read("results.xml"), as: UTF8.self)
    for flags in ["", "-o -"] { #expect(try expectations.check("--format junit \(flags)").output == saved, "\(flags)") }
    try expectations.sandbox.devices.run("mkdir folder")
    for path in ["folder", "folder/", "nowhere/results.xml"] {
      #expect(try expectations.check("--format junit -o \(path)").status == 1, "\(path)")
    }
    #expect(try expectations.sandbox.names(in: "folder") == [])
    // If the lines cannot be printed, the file is not written either.
    try expectations.sandbox.devices.run("rm results.xml")
    let unprinted = try expectations.sandbox.devices.run(
      "keyhaul plan old-phone --to new-phone --expect list.json --format junit -o results.xml > /dev/full")
    #expect(unprinted.status == 1, "\(unprinted)")
    #expect(try !expectations.sandbox.names().contains("results.xml"))
  }

  @Test("Untrusted names cannot become markup or invalid XML characters")
  func untrustedNames() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create hostile-names --from hostile-names -q")
    let pattern = #"\u001b]0;x\u0007 </testcase><x a=\"'&\u202e]]>\ufffe"#
    let expectations = try ExpectationSandbox(
      #"{"account": "*", "expect": "absent"}, {"service": "\#(pattern)", "expect": "migrates"}"#, in: sandbox)
    let outcome = try expectations.check("--format junit", of: "hostile-names")
    #expect(outcome.status == 2)
    let report = try JUnitReader(outcome.output)
    #expect(report.failures.count == 2)
    let name = try #require(report.tests.last?["name"])
    #expect(name == #"service \u{1B}]0;x\u{7} </testcase><x a="'&\u{202E}]]>\u{FFFE}: migrates"#)
    #expect(!outcome.output.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" || $0.properties.isBidiControl })
  }
}
