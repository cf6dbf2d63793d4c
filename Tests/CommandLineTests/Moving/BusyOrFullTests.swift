import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Busy devices and full disks")
struct BusyOrFullTests {
  @Test("A restore exits with 11 while another command uses the device, and --wait waits for that command")
  func busy() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let device = try DeviceSet(path: sandbox.devices.devices.path).device(DeviceName("new-phone"))
    let otherSession = try device.openSession(.reading, verb: "keyhaul plan")
    let restore = "restore b.tar --to new-phone --password-file .bp --yes"
    // Other commands can read the device, but not change it. The error names no process, because the restore itself was
    // the last one to open the device.
    let refused = try sandbox.keyhaul(restore)
    #expect(refused.status == 11 && refused.output == "", "\(refused)")
    #expect(
      SessionScript.matches(
        refused.errors,
        ["error: new-phone is in use", "  why: another process is using it", "  try: wait, or add --wait 30s"]),
      "\(refused.errors)")
    #expect(try sandbox.keyhaul("item delete new-phone --service AirPort --yes").status == 11)
    #expect(try sandbox.keyhaul("plan b.tar --to new-phone --password-file .bp").status == 0)

    nonisolated(unsafe) let endingSession = otherSession
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: 0.3)
      endingSession.invalidate()
    }
    let waited = try sandbox.keyhaul("\(restore) --wait 60s")
    #expect(
      waited.status == 0
        && waited.output == "Restored 13 items to new-phone in one step; 1 was already there, 4 stayed behind.\n",
      "\(waited)")
  }

  @Test("A full disk leaves no part of a new backup, and keeps the old backup")
  func full() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "old.tar")
    try sandbox.backUp(to: "old/")
    let tarBefore = try sandbox.read("old.tar")
    let folderBefore = try sandbox.fileContents(in: "old")
    // In this file, a limit on the size of a file has the effect of a full disk.
    for name in ["new.tar", "new.tar.gz", "new.zip", "new/", "old.tar", "old/"] {
      let outcome = try sandbox.devices.run(
        "ulimit -f 64; keyhaul backup old-phone -o \(name) --password-file .bp --rounds 1 --yes")
      #expect(outcome.status == 1 && outcome.output == "", "\(name): \(outcome)")
      #expect(
        outcome.errors.hasPrefix("error: could not write \(name)\n  why: \(name): file too large\n"),
        "\(outcome.errors)")
    }
    #expect(try sandbox.names() == [".bp", "devices", "old", "old.tar"])
    #expect(try sandbox.read("old.tar") == tarBefore)
    #expect(try sandbox.fileContents(in: "old") == folderBefore)
  }

  @Test("A full disk during a restore leaves the keychain unchanged")
  func fullRestore() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let deviceBefore = try sandbox.contents(of: "new-phone")
    let outcome = try sandbox.devices.run(
      "ulimit -f 32; keyhaul restore b.tar --to new-phone --password-file .bp --yes")
    #expect(outcome.status == 1 && outcome.output == "" && outcome.errors.hasPrefix("error: "), "\(outcome)")
    #expect(try sandbox.contents(of: "new-phone") == deviceBefore)
    try sandbox.succeed("restore b.tar --to new-phone --password-file .bp --yes")
  }

  @Test("A plan that cannot be saved or printed fails, and leaves no file")
  func plan() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    try sandbox.devices.run("mkfifo pipe; mkdir folder")
    for name in ["nowhere/p", "b.tar/p", "folder", "pipe", "/proc/p"] {
      let outcome = try sandbox.keyhaul("plan b.tar --to new-phone --password-file .bp -o \(name)")
      #expect(outcome.status == 1 && outcome.errors.hasPrefix("error: could not write \(name)\n"), "\(outcome)")
    }
    #expect(try sandbox.names() == [".bp", "b.tar", "devices", "folder", "pipe"])
    #expect(try sandbox.devices.run("keyhaul --version > /dev/full").status == 1)
    let printed = try sandbox.devices.run("keyhaul plan b.tar --to new-phone --password-file .bp > /dev/full")
    #expect(printed.status == 1 && printed.errors.contains("error: could not write the result"), "\(printed)")
  }
}
