import Foundation
import Testing

@testable import keyhaul

@Suite("Errors after a completed change")
struct CommittedChangeTests {
  /// Runs a line under file-size limits, in blocks of 512 bytes, as a disk that is full earlier or later. Each time the
  /// device begins as it was.
  ///
  /// - Returns: The statuses that there were.
  private func underLimits(
    _ line: String, on device: String, in sandbox: PhoneSandbox, done: String, _ blocks: StrideThrough<Int>
  ) throws -> Set<Int32> {
    // The revision may be raised for nothing, and an empty device has nothing to find.
    func items() throws -> String { try sandbox.keyhaul("item find \(device) --json --reveal").output }
    let before = try items()
    try sandbox.devices.run("cp -Rp devices/\(device) before")
    var statuses: Set<Int32> = []
    for count in blocks {
      try sandbox.devices.run("rm -rf devices/\(device) && cp -Rp before devices/\(device)")
      let outcome = try sandbox.devices.run("ulimit -f \(count); keyhaul \(line)")
      statuses.insert(outcome.status)
      let isUnchanged = try items() == before
      #expect([0, 1, 5].contains(outcome.status), "\(count): \(outcome)")
      #expect(isUnchanged == (outcome.status == 1), "\(count): \(outcome)")
      let told = unwrapped(outcome.errors)
      #expect(told.contains("error: done, but ") == (outcome.status == 5), "\(count): \(told)")
      #expect(told.contains("\(done), and this change is final; ") == (outcome.status == 5), "\(count): \(told)")
      #expect(outcome.status != 5 || !told.contains("nothing was"), "\(count): \(told)")
    }
    return statuses
  }

  @Test("A full disk before and after a restore's commit is reported correctly")
  func restore() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b.tar")
    let statuses = try underLimits(
      "restore b.tar --to new-phone --password-file .bp --yes", on: "new-phone", in: sandbox,
      done: "13 items were restored to new-phone", stride(from: 40, through: 1240, by: 120))
    #expect(statuses.isSuperset(of: [1, 5]), "\(statuses)")
  }

  @Test("A full disk before and after the commit of an erasure is reported correctly")
  func erasure() throws {
    let sandbox = try PhoneSandbox()
    let statuses = try underLimits(
      "device erase new-phone --yes", on: "new-phone", in: sandbox, done: "new-phone was erased",
      stride(from: 1, through: 301, by: 50))
    #expect(statuses.isSuperset(of: [5]), "\(statuses)")
  }

  @Test("A closed output does not hide a completed change")
  func closedPipe() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b.tar")
    let outcome = try sandbox.devices.run(
      "(keyhaul restore b.tar --to new-phone --password-file .bp --yes; echo $? > code) | :; cat code")
    #expect(outcome.output == "5\n")
    #expect(
      outcome.errors == """
        error: done, but the program that reads the result has ended
          why: 13 items were restored to new-phone, and this change is final
          try: don't run it again; keyhaul device show new-phone shows its current state

        """)
    #expect(try sandbox.object(sandbox.succeed("device show new-phone --json"))["items"] as? Int == 14)
  }

  @Test("JSON has a member for the completed change")
  func json() throws {
    let sandbox = try PhoneSandbox()
    let outcome = try sandbox.devices.run("keyhaul device erase new-phone --yes --json > /dev/full")
    #expect(outcome.status == 5)
    let message = try sandbox.object(outcome.errors)
    #expect(message["code"] as? Int == 5 && message["id"] as? String == "done-but")
    #expect(message["done"] as? String == "new-phone was erased")
    // An error of work that was not done has none.
    let before = try sandbox.devices.run("keyhaul device erase nobody --yes --json")
    #expect(before.status == 10)
    #expect(try sandbox.object(before.errors)["done"] == nil)
  }

  @Test("A backup is reported as complete if only its record on the device fails")
  func backup() throws {
    let sandbox = try PhoneSandbox()
    // The next record is written beside the old one: a directory in its place, made once the device is held, is in the
    // way.
    let outcome = try sandbox.devices.run(
      "keyhaul backup old-phone -o b.tar --rounds 1 "
        + "--password-command 'mkdir devices/old-phone/device.json.next; cat .bp'")
    #expect(outcome.status == 5, "\(outcome)")
    let told = unwrapped(outcome.errors)
    #expect(told.hasPrefix("error: done, but old-phone: the file system refused why: "), "\(told)")
    #expect(told.contains("the backup of old-phone was written to b.tar, and this change is final; "), "\(told)")
    #expect(told.hasSuffix("try: don't run it again; keyhaul inspect b.tar shows its current state"), "\(told)")
    try sandbox.succeed("verify b.tar --password-file .bp")
  }

  @Test("A plan is printed and saved, or neither", arguments: ["", "--json", "--expect expected.json"])
  func plan(flags: String) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b.tar")
    try sandbox.write(
      Array(
        #"{"format":"plan-expectations/1","expectations":[{"account":"anna","expect":"migrates"}]}"#.utf8),
      to: "expected.json")
    let line = "plan b.tar --to new-phone --password-file .bp -o p \(flags)"
    for sink in ["/dev/full", "&-"] {
      let outcome = try sandbox.devices.run("keyhaul \(line) >\(sink)")
      #expect(outcome.status == 1 && outcome.errors.contains("could not write the result"), "\(outcome)")
      #expect(try sandbox.names() == [".bp", "b.tar", "devices", "expected.json"])
    }
    try sandbox.write(Array("mine".utf8), to: "p")
    #expect(try sandbox.devices.run("keyhaul \(line) --yes > /dev/full").status == 1)
    #expect(try sandbox.read("p") == Array("mine".utf8))
    try sandbox.succeed("\(line) --yes")
    #expect(try sandbox.names() == [".bp", "b.tar", "devices", "expected.json", "p"])
    #expect(try sandbox.read("p") != Array("mine".utf8))
  }
}
