import Foundation
import Testing

@testable import keyhaul

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// A list of expectations, and the phones that it is checked against.
private struct ExpectationSandbox {
  let sandbox: PhoneSandbox

  init(_ expectations: String, in sandbox: PhoneSandbox? = nil) throws {
    self.sandbox = try sandbox ?? PhoneSandbox()
    let list = #"{"format": "plan-expectations/1", "expectations": [\#(expectations)]}"#
    try self.sandbox.write(Array(list.utf8), to: "list.json")
  }

  func check(_ flags: String = "", of source: String = "old-phone") throws -> BuiltProgram.Outcome {
    try sandbox.keyhaul("plan \(source) --to new-phone --expect list.json \(flags)")
  }
}

/// The login moves with a password alone, the push token to no other device.
private let fourScenarios = """
  {"service": "chat.example", "account": "anna", "expect": "migrates", "password": true},
  {"service": "chat.example", "account": "anna", "expect": "stays-behind", "reason": "backup-not-encrypted",
   "password": false, "same_device": false},
  {"account": "push token", "expect": "stays-behind", "reason": "device-bound", "same_device": false},
  {"account": "push token", "expect": "migrates", "same_device": true}
  """

@Suite("Expectations for the four restores")
struct ExpectationScenarioTests {
  @Test("A plan checks the expectations for its own restore, and counts the others")
  func own() throws {
    let lists = try ExpectationSandbox(fourScenarios)
    let encrypted = try lists.check()
    #expect(
      encrypted.output
        == "2 of 2 expectations met; 2 more are for other restores and were not checked "
        + "(plan --compare checks all four restores).\n"
        && encrypted.status == 0, "\(encrypted)")
    let plain = try lists.check("--no-password")
    #expect(plain.output.hasPrefix("2 of 2 expectations met; 2 more are for other restores"), "\(plain)")
    let document = try lists.sandbox.object(lists.check("--json").output)
    #expect(document["expectations"] as? Int == 4 && document["checked"] as? Int == 2)
    #expect(document["met"] as? Int == 2 && document["unchecked"] as? [Int] == [1, 3])
    // The same of a backup: what it is, its keys say.
    try lists.sandbox.backUp(to: "b.tar")
    let archive = try lists.check("--password-file .bp", of: "b.tar")
    #expect(archive.status == 0 && archive.output.contains("2 of 2 expectations met; 2 more are for"), "\(archive)")
  }

  @Test("A comparison checks each expectation in every restore that it is for")
  func compared() throws {
    let lists = try ExpectationSandbox(fourScenarios)
    let met = try lists.check("--compare")
    #expect(met == .init(output: "4 of 4 expectations met.\n", errors: "", status: 0), "\(met)")
    let document = try lists.sandbox.object(lists.check("--compare --json").output)
    let settings = try #require(document["settings"] as? [[String: Any]])
    #expect(settings.map { $0["checked"] as? Int } == [2, 2, 1, 2])
    #expect(settings.map { $0["password"] as? Bool } == [true, true, false, false])
    let wrong = try ExpectationSandbox(#"{"account": "push token", "expect": "migrates"}"#)
    let missed = try wrong.check("--compare")
    #expect(missed.status == 2)
    #expect(
      missed.output == """
        missed: with a password, to another device: generic password "chat.example · push token": expected migrates, \
        the comparison says stays-behind (device-bound)
        missed: without a password, to another device: generic password "chat.example · push token": expected migrates, \
        the comparison says stays-behind (device-bound)
        0 of 1 expectation met.

        """, "\(missed.output)")
    let misses = try wrong.sandbox.object(wrong.check("--compare --json").output)["misses"] as? [[String: Any]]
    #expect(misses?.compactMap { ($0["setting"] as? [String: Any])?["same_device"] as? Bool } == [false, false])
  }

  @Test("A run that checks no expectation fails", arguments: ["", "--json", "--format junit"])
  func nothing(flags: String) throws {
    let lists = try ExpectationSandbox(#"{"account": "push token", "expect": "migrates", "same_device": true}"#)
    let outcome = try lists.check("\(flags) -o saved")
    #expect(outcome.status == 64 && outcome.output == "", "\(outcome)")
    #expect(outcome.errors.contains("no expectation applies to this restore"), "\(outcome.errors)")
    #expect(try !lists.sandbox.names().contains("saved"))
    #expect(try lists.check("--compare").status == 0)
  }

  @Test("An expectation about the same device is not checked if no key proves the device")
  func unproven() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create plain-app -q")
    try sandbox.devices.run("printf x | keyhaul item add plain-app --service s --account token --secret-file - -q")
    try sandbox.backUp("plain-app", to: "b.tar")
    let lists = try ExpectationSandbox(
      #"{"account": "token", "expect": "migrates", "same_device": false}"#, in: sandbox)
    let outcome = try lists.check("--password-file .bp", of: "b.tar")
    #expect(outcome.status == 64, "\(outcome)")
    let told = outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(told.contains("with a password, to a device that may be the same or another one"), "\(told)")
  }

  @Test("Flags that do not apply to expectations are rejected")
  func usage() throws {
    let lists = try ExpectationSandbox(fourScenarios)
    for flags in ["--by-app", "--audit", "--redact", "--format html", "--compare --format html", "--compare -o p"] {
      #expect(try lists.check(flags).status == 64, "\(flags)")
    }
    #expect(try lists.sandbox.keyhaul("plan old-phone --to new-phone --format junit").status == 64)
    #expect(try lists.sandbox.keyhaul("inspect old-phone --format junit").status == 64)
  }
}

@Suite("Expectations as JUnit XML")
struct ExpectationTestReportTests {
  /// The contents of the document according to another parser.
  private final class Reader: NSObject, XMLParserDelegate {
    private(set) var suites: [[String: String]] = []
    private(set) var tests: [[String: String]] = []
    private(set) var failures: [[String: String]] = []
    private(set) var skipped = 0
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
      case "skipped": skipped += 1
      default: Issue.record("an element \(name)")
      }
    }

    func parser(_: XMLParser, foundCharacters text: String) { self.text += text }
  }

  @Test("A plan is one test suite, and expectations for other restores are skipped")
  func plan() throws {
    let lists = try ExpectationSandbox(
      fourScenarios
        + #", {"account": "push token", "expect": "migrates"}, {"account": "push token", "expect": "migrates"}"#)
    let outcome = try lists.check("--format junit")
    #expect(outcome.status == 2, "\(outcome)")
    #expect(outcome.output.hasPrefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"expectations\""))
    let report = try Reader(outcome.output)
    #expect(report.suites.map { $0["tests"] } == ["6", "4", "2"])
    #expect(report.suites.map { $0["failures"] } == ["2", "2", "0"] && report.skipped == 2)
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
    // Equal results are equal bytes.
    #expect(try lists.check("--format junit").output == outcome.output)
  }

  @Test("A comparison has one test suite per restore")
  func comparison() throws {
    let report = try Reader(try ExpectationSandbox(fourScenarios).check("--compare --format junit").output)
    #expect(report.suites.map { $0["tests"] } == ["7", "2", "2", "1", "2"])
    #expect(report.failures.isEmpty && report.skipped == 0)
  }

  @Test("The XML goes into a file while lines are printed, and a folder is rejected")
  func file() throws {
    let lists = try ExpectationSandbox(#"{"account": "push token", "expect": "migrates"}"#)
    let outcome = try lists.check("--format junit -o results.xml")
    #expect(outcome.status == 2 && outcome.output.hasSuffix("\n0 of 1 expectation met.\n"), "\(outcome)")
    let saved = String(decoding: try lists.sandbox.read("results.xml"), as: UTF8.self)
    for flags in ["", "-o -"] { #expect(try lists.check("--format junit \(flags)").output == saved, "\(flags)") }
    try lists.sandbox.devices.run("mkdir folder")
    for place in ["folder", "folder/", "nowhere/results.xml"] {
      #expect(try lists.check("--format junit -o \(place)").status == 1, "\(place)")
    }
    #expect(try lists.sandbox.names(in: "folder") == [])
    // Both or neither.
    try lists.sandbox.devices.run("rm results.xml")
    let full = try lists.sandbox.devices.run(
      "keyhaul plan old-phone --to new-phone --expect list.json --format junit -o results.xml > /dev/full")
    #expect(full.status == 1, "\(full)")
    #expect(try !lists.sandbox.names().contains("results.xml"))
  }

  @Test("Untrusted names cannot become markup or invalid XML characters")
  func hostile() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create hostile-names --from hostile-names -q")
    let pattern = #"\u001b]0;x\u0007 </testcase><x a=\"'&\u202e]]>\ufffe"#
    let lists = try ExpectationSandbox(
      #"{"account": "*", "expect": "absent"}, {"service": "\#(pattern)", "expect": "migrates"}"#, in: sandbox)
    let outcome = try lists.check("--format junit", of: "hostile-names")
    #expect(outcome.status == 2)
    let report = try Reader(outcome.output)
    #expect(report.failures.count == 2)
    let named = try #require(report.tests.last?["name"])
    #expect(named == #"service \u{1B}]0;x\u{7} </testcase><x a="'&\u{202E}]]>\u{FFFE}: migrates"#)
    #expect(!outcome.output.unicodeScalars.contains { $0.value < 0x20 && $0 != "\n" || $0.properties.isBidiControl })
  }
}
