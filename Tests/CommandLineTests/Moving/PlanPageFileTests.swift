import Foundation
import Testing

@testable import keyhaul

@Suite("A plan as a page in a file")
struct PlanPageFileTests {
  private let line = "plan b.tar --to new-phone --password-file .bp --format html"

  private func world() throws -> MoveWorld {
    let world = try MoveWorld(backedUpTo: "b.tar")
    return world
  }

  @Test("is written for its owner's eyes, with the verdict and no secret in it")
  func file() throws {
    let world = try world()
    let outcome = try world.keyhaul("\(line) -o plan.html")
    #expect(outcome.status == 0 && outcome.output.isEmpty)
    #expect(outcome.errors == "Wrote plan.html; open it in a browser.\n")
    #expect(try world.devices.permissions(of: "plan.html") == 0o600)
    let page = String(decoding: try world.read("plan.html"), as: UTF8.self)
    #expect(page.hasPrefix("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"))
    #expect(
      page.contains(">14 of 18 items move to new-phone; 4 stay behind. 4 items on old-phone are never in a backup.<"))
    #expect(page.contains("Made by keyhaul \(Keyhaul.version)."))
    #expect(!page.contains("plum-orchard-42"))
  }

  @Test("goes to standard output where that is no terminal, and to none")
  func standardOutput() throws {
    let world = try world()
    #expect(try world.keyhaul(line).output.hasPrefix("<!DOCTYPE html>"))
    #expect(try world.keyhaul("\(line) -o -").output.hasPrefix("<!DOCTYPE html>"))
    let arguments = line.split(separator: " ").map(String.init)
    let refused = try world.devices.runOnTerminal(arguments)
    #expect(refused.status == 64)
    #expect(refused.terminal.contains("an HTML page cannot be read on a terminal"))
    #expect(!refused.terminal.contains("<!DOCTYPE"))
  }

  @Test(
    "on a terminal is refused before a password is asked for, by every verb that has a page",
    arguments: [
      "plan family.backup --to new-phone", "inspect family.backup", "diff family.backup family.backup",
    ])
  func refusedUnasked(_ call: String) throws {
    let world = try MoveWorld(backedUpTo: "family.backup")
    let refused = try world.devices.runOnTerminal(
      "\(call) --format html".split(separator: " ").map(String.init))
    #expect(refused.status == 64)
    #expect(refused.terminal.contains("an HTML page cannot be read on a terminal"))
    #expect(!refused.terminal.contains("Password"))
  }

  @Test("ends as the plan in text does")
  func exitCodes() throws {
    let world = try world()
    #expect(try world.keyhaul("\(line) --exit-code -o plan.html").status == 2)
    #expect(try world.names().contains("plan.html"))
    let wrong = try world.keyhaul("plan b.tar --to new-phone --password-command 'echo no' --format html -o no.html")
    #expect(wrong.status == 12)
    #expect(try !world.names().contains("no.html"))
  }

  @Test("is a form of the plan itself: of no other view of it, and of no result that has no page")
  func otherForms() throws {
    let world = try world()
    for verb in ["device list", "item find old-phone", "explain", "verify b.tar"] {
      #expect(try world.keyhaul("\(verb) --format html").status == 64)
    }
    for flag in ["--json", "--by-app", "--audit", "--expect expected.json"] {
      #expect(try world.keyhaul("\(line) \(flag)").status == 64, "\(flag)")
    }
  }

  @Test("of four restores is a page too, with the list of what to do before the phone is wiped")
  func comparison() throws {
    let world = try world()
    let outcome = try world.keyhaul("\(line) --compare -o compare.html")
    #expect(outcome.status == 0 && outcome.output.isEmpty)
    #expect(outcome.errors == "Wrote compare.html; open it in a browser.\n")
    #expect(try world.devices.permissions(of: "compare.html") == 0o600)
    let page = String(decoding: try world.read("compare.html"), as: UTF8.self)
    #expect(page.contains(">With the password, 14 of 18 items move, and no more can;"))
    #expect(page.contains("Before you erase <bdi>old-phone</bdi>"))
    #expect(!page.contains("plum-orchard-42"))
    // What is no page is no plan to save either.
    #expect(try world.keyhaul("plan b.tar --to new-phone --password-file .bp --compare -o compare").status == 64)
    // A device names what no backup holds, app by app.
    let device = try world.succeed("plan old-phone --to new-phone --compare --format html -o -")
    #expect(device.contains("Export or move the protected data in the app."))
    #expect(device.contains("<span>old-phone.backup</span>"))
  }

  @Test("of a device says to back it up first, and restores that backup")
  func device() throws {
    let world = try world()
    let page = try world.succeed("plan old-phone --to new-phone --existing merge --format html")
    let commands = page.matches(of: /<code><span>keyhaul.*?<\/code>/).map { match in
      match.output.replacing(/<[^>]*>/, with: "")
    }
    #expect(
      commands == [
        "keyhaul backup old-phone -o old-phone.backup", "keyhaul export old-phone --reveal -o codes.qr.html",
        "keyhaul plan old-phone.backup --to new-phone --existing merge -o move.plan",
        "keyhaul restore old-phone.backup --to new-phone --plan move.plan",
      ])
    // Apps by the names that the device has for them.
    #expect(page.contains("<bdi>bank</bdi>"))
  }

  @Test("of a redacted plan holds no name of an item, an app or a device")
  func redacted() throws {
    let world = try world()
    for source in ["b.tar --password-file .bp", "old-phone"] {
      let page = try world.succeed("plan \(source) --to new-phone --redact --format html")
      #expect(page.contains("item-0003"))
      for name in [
        ">bank<", "bank.example", "chat", "anna", "push token", "old-phone", "new-phone", "b.tar", "AirPort",
      ] {
        #expect(!page.contains(name), "\(name) of \(source)")
      }
    }
  }
}
