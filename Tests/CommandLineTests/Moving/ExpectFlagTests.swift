import Foundation
import Testing

@testable import keyhaul

@Suite("Expectations on the command line")
struct ExpectFlagTests {
  private func writeExpectation(_ outcome: String, to name: String, in sandbox: PhoneSandbox) throws {
    let list =
      #"{"format":"plan-expectations/1","expectations":[{"account":"push token","expect":"\#(outcome)"}]}"#
    try sandbox.write(Array(list.utf8), to: name)
  }

  @Test("Plan exits with 0 if all expectations are met. If not, it exits with 2 and prints a line for each miss")
  func exitCodes() throws {
    let sandbox = try SnapshotTests.sandbox()
    try writeExpectation("stays-behind", to: "stays.json", in: sandbox)
    let met = try sandbox.keyhaul("plan old-phone --to new-phone --expect stays.json")
    #expect(met == .init(output: "1 of 1 expectation met.\n", errors: "", status: 0))
    let unmet = try sandbox.keyhaul("plan old-phone --to new-phone --expect expected.json")
    #expect(unmet.status == 2)
    // One of the five expectations is met, and one of the others is missed by two items.
    #expect(unmet.output.split(separator: "\n").count { $0.hasPrefix("missed: ") } == 5)
    let json = try sandbox.keyhaul("plan old-phone --to new-phone --expect expected.json --json -o saved")
    #expect(json.status == 2)
    let document = try sandbox.object(json.output)
    #expect(document["format"] as? String == "plan-expectation-result/1")
    #expect(document["expectations"] as? Int == 5 && document["met"] as? Int == 1)
    #expect((document["misses"] as? [Any])?.count == 5)
    #expect(try sandbox.names().contains("saved"))
  }

  @Test("A missed expectation says how many encrypted items, whose names are unknown, may match")
  func encryptedItems() throws {
    let sandbox = try SnapshotTests.sandbox()
    let plan = "plan stranger.tar --to new-phone --password-file .bp"
    let note = "A backup cannot show items left out of it: keyhaul explain never-in-backup\n"
    // Three encrypted items may have an account; the fourth is a key.
    try writeExpectation("stays-behind", to: "stays.json", in: sandbox)
    let unmatched = try sandbox.keyhaul("\(plan) --expect stays.json")
    #expect(unmatched.status == 2)
    #expect(
      unmatched.output
        == "missed: account push token: expected stays-behind, but no item matches (3 encrypted items in the plan have "
        + "no name)\n\(note)0 of 1 expectation met.\n")
    try writeExpectation("absent", to: "absent.json", in: sandbox)
    let uncertain = try sandbox.keyhaul("\(plan) --expect absent.json")
    #expect(uncertain.status == 2)
    #expect(
      uncertain.output
        == "missed: account push token: expected absent, which cannot be known: 3 encrypted items in the plan have no "
        + "name\n\(note)0 of 1 expectation met.\n")
    let document = try sandbox.object(sandbox.keyhaul("\(plan) --expect absent.json --json").output)
    // `sealed` is the number of encrypted items.
    #expect((document["misses"] as? [[String: Any]])?.first?["sealed"] as? Int == 3)
  }

  @Test("A file that is not a valid list of expectations is rejected with the position of the error")
  func refused() throws {
    let sandbox = try PhoneSandbox()
    let cases: [(text: String, why: String)] = [
      ("", "it is not JSON (line 1, column 1)"),
      (#"{"format":"plan-expectations/1"}"#, #"the list: it has no "expectations""#),
      (
        #"{"format":"plan-expectations/1","expectations":[{"account":"a","expect":"migrates"},{"acount":"a"}]}"#,
        #"expectation 2, line 1: "acount" is not a known member; "account" is similar try: "account" in its place"#
      ),
      (
        #"{"format":"plan-expectations/1","expectations":[{"userid":"a","expect":"migrates"}]}"#,
        #"expectation 1, line 1: "userid" is not a known member; known are access_group, account, expect, kind, label, password, reason,"#
      ),
      (
        #"{"format":"plan-expectations/1","expectation":[]}"#,
        #"the list, line 1: "expectation" is not a known member; "expectations" is similar try: "expectations" in its place"#
      ),
      (
        #"{"format":"plan-expectations/1","expectations":[{"account":"a","expect":"migrate"}]}"#,
        #"expectation 1, line 1: "migrate" cannot be expected; "migrates" is similar try: "migrates" in its place"#
      ),
      (
        #"{"format":"plan-expectations/1","expectations":[{"kind":"certifcate","expect":"absent"}]}"#,
        #"expectation 1, line 1: "certifcate" is not a kind; "certificate" is similar try: "certificate" in its place"#
      ),
      (
        #"{"format":"plan-expectations/1","expectations":[{"kind":"key","expect":"stays-behind","reason":"device_bound"}]}"#,
        #"expectation 1, line 1: "device_bound" is not a reason; "device-bound" is similar try: "device-bound" in its place"#
      ),
      (
        #"{"format":"plan-expectations/1","expectations":[{"kind":"key","expect":"stays-behind","reason":"because"}]}"#,
        #"expectation 1, line 1: "because" is not a reason; explain lists them"#
      ),
      (
        #"{"format":"x","expectations":[]}"#,
        #"the list, line 1: its format is "x"; Keyhaul reads plan-expectations/1"#
      ),
    ]
    for (text, why) in cases {
      try sandbox.write(Array(text.utf8), to: "e.json")
      let outcome = try sandbox.keyhaul("plan old-phone --to new-phone --expect e.json")
      let errors = unwrapped(outcome.errors)
      #expect(outcome.status == 64 && errors.contains("why: \(why)"), "\(outcome.errors)")
    }
    #expect(try sandbox.keyhaul("plan old-phone --to new-phone --expect nowhere").status == 10)
  }

  @Test("With --exit-code, a plan exits with 2 if items stay behind, and otherwise with 0")
  func exitCode() throws {
    let sandbox = try PhoneSandbox()
    #expect(try sandbox.keyhaul("plan old-phone --to new-phone --exit-code").status == 2)
    #expect(try sandbox.keyhaul("plan new-phone --to old-phone --exit-code --existing merge").status == 0)
  }
}
