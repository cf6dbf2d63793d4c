import Foundation
import Testing

@testable import keyhaul

@Suite("Errors after a completed change")
struct CommittedChangeTests {
  /// Runs a command under limits of the file size, which simulate a disk that becomes full earlier or later. Each run
  /// starts with the same device.
  ///
  /// - Parameters:
  ///   - change: The completed change, as an error states it.
  ///   - limits: The limits, in blocks of 512 bytes.
  /// - Returns: The exit codes of all runs.
  private func statuses(
    of line: String, on device: String, in sandbox: PhoneSandbox, change: String, limits: StrideThrough<Int>
  ) throws -> Set<Int32> {
    // Only the items are compared, because the revision may increase without a change.
    func items() throws -> String { try sandbox.keyhaul("item find \(device) --json --reveal").output }
    let itemsBefore = try items()
    try sandbox.devices.run("cp -Rp devices/\(device) before")
    var statuses: Set<Int32> = []
    for count in limits {
      try sandbox.devices.run("rm -rf devices/\(device) && cp -Rp before devices/\(device)")
      let outcome = try sandbox.devices.run("ulimit -f \(count); keyhaul \(line)")
      statuses.insert(outcome.status)
      let isUnchanged = try items() == itemsBefore
      // 1 means that nothing was changed, and 5 that the change was made but a later step failed.
      #expect([0, 1, 5].contains(outcome.status), "\(count): \(outcome)")
      #expect(isUnchanged == (outcome.status == 1), "\(count): \(outcome)")
      let errors = unwrapped(outcome.errors)
      #expect(errors.contains("error: done, but ") == (outcome.status == 5), "\(count): \(errors)")
      #expect(errors.contains("\(change), and this change is final; ") == (outcome.status == 5), "\(count): \(errors)")
      #expect(outcome.status != 5 || !errors.contains("nothing was"), "\(count): \(errors)")
    }
    return statuses
  }

  @Test("A full disk before and after a restore's commit is reported correctly")
  func restore() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b.tar")
    let statuses = try statuses(
      of: "restore b.tar --to new-phone --password-file .bp --yes", on: "new-phone", in: sandbox,
      change: "13 items were restored to new-phone", limits: stride(from: 40, through: 1240, by: 120))
    #expect(statuses.isSuperset(of: [1, 5]), "\(statuses)")
  }

  @Test("A full disk before and after the commit of an erasure is reported correctly")
  func erasure() throws {
    let sandbox = try PhoneSandbox()
    let statuses = try statuses(
      of: "device erase new-phone --yes", on: "new-phone", in: sandbox, change: "new-phone was erased",
      limits: stride(from: 1, through: 301, by: 50))
    #expect(statuses.isSuperset(of: [5]), "\(statuses)")
  }

  @Test("A closed output does not hide a completed change")
  func closedPipe() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b.tar")
    // The command `:` ends without reading its input.
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
    // An error before any change does not have this member.
    let failed = try sandbox.devices.run("keyhaul device erase nobody --yes --json")
    #expect(failed.status == 10)
    #expect(try sandbox.object(failed.errors)["done"] == nil)
  }

  @Test("A backup is reported as written if only the device's record cannot be updated")
  func backup() throws {
    let sandbox = try PhoneSandbox()
    // A device's record is replaced by a new file. A directory with the name of that file, created while the device is in
    // use, makes this fail.
    let outcome = try sandbox.devices.run(
      "keyhaul backup old-phone -o b.tar --rounds 1 "
        + "--password-command 'mkdir devices/old-phone/device.json.next; cat .bp'")
    #expect(outcome.status == 5, "\(outcome)")
    let errors = unwrapped(outcome.errors)
    #expect(errors.hasPrefix("error: done, but old-phone: the file system refused why: "), "\(errors)")
    #expect(errors.contains("the backup of old-phone was written to b.tar, and this change is final; "), "\(errors)")
    #expect(errors.hasSuffix("try: don't run it again; keyhaul inspect b.tar shows its current state"), "\(errors)")
    try sandbox.succeed("verify b.tar --password-file .bp")
  }

  @Test("A plan that cannot be printed is not saved either", arguments: ["", "--json", "--expect expected.json"])
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
