import Foundation
import Testing

@testable import keyhaul

@Suite("Plans as HTML pages")
struct PlanPageFileTests {
  private let line = "plan b.tar --to new-phone --password-file .bp --format html"

  private func sandbox() throws -> PhoneSandbox { try PhoneSandbox(backedUpTo: "b.tar") }

  @Test("The page is readable only by its owner, with the verdict and without secrets")
  func file() throws {
    let sandbox = try sandbox()
    let outcome = try sandbox.keyhaul("\(line) -o plan.html")
    #expect(outcome.status == 0 && outcome.output.isEmpty)
    #expect(outcome.errors == "Wrote plan.html; open it in a browser.\n")
    #expect(try sandbox.devices.permissions(of: "plan.html") == 0o600)
    let page = String(decoding: try sandbox.read("plan.html"), as: UTF8.self)
    #expect(page.hasPrefix("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"))
    #expect(
      page.contains(">14 of 18 items move to new-phone; 4 stay behind. 4 items on old-phone are never in a backup.<"))
    #expect(page.contains("Made by keyhaul \(Keyhaul.version)."))
    // A secret of old-phone.
    #expect(!page.contains("plum-orchard-42"))
  }

  @Test("The page is written to standard output, but not to a terminal")
  func standardOutput() throws {
    let sandbox = try sandbox()
    #expect(try sandbox.keyhaul(line).output.hasPrefix("<!DOCTYPE html>"))
    #expect(try sandbox.keyhaul("\(line) -o -").output.hasPrefix("<!DOCTYPE html>"))
    let arguments = line.split(separator: " ").map(String.init)
    let refused = try sandbox.devices.runOnTerminal(arguments)
    #expect(refused.status == 64)
    #expect(refused.terminal.contains("an HTML page cannot be read on a terminal"))
    #expect(!refused.terminal.contains("<!DOCTYPE"))
  }

  @Test(
    "On a terminal, every command with a page rejects --format html before asking for a password",
    arguments: [
      "plan family.backup --to new-phone", "inspect family.backup", "diff family.backup family.backup",
    ])
  func refusedBeforePassword(_ command: String) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "family.backup")
    let refused = try sandbox.devices.runOnTerminal(
      "\(command) --format html".split(separator: " ").map(String.init))
    #expect(refused.status == 64)
    #expect(refused.terminal.contains("an HTML page cannot be read on a terminal"))
    #expect(!refused.terminal.contains("Password"))
  }

  @Test("With --format html, plan exits with 2 for --exit-code, and with 12 for a wrong password")
  func exitCodes() throws {
    let sandbox = try sandbox()
    #expect(try sandbox.keyhaul("\(line) --exit-code -o plan.html").status == 2)
    #expect(try sandbox.names().contains("plan.html"))
    let withWrongPassword = try sandbox.keyhaul(
      "plan b.tar --to new-phone --password-command 'echo no' --format html -o no.html")
    #expect(withWrongPassword.status == 12)
    #expect(try !sandbox.names().contains("no.html"))
  }

  @Test("Commands without a page, and views of a plan without a page, reject --format html")
  func otherResults() throws {
    let sandbox = try sandbox()
    for line in ["device list", "item find old-phone", "explain", "verify b.tar"] {
      #expect(try sandbox.keyhaul("\(line) --format html").status == 64)
    }
    for flag in ["--json", "--by-app", "--audit", "--expect expected.json"] {
      #expect(try sandbox.keyhaul("\(line) \(flag)").status == 64, "\(flag)")
    }
  }

  @Test("The page of four restores lists what to do before the phone is wiped")
  func comparison() throws {
    let sandbox = try sandbox()
    let outcome = try sandbox.keyhaul("\(line) --compare -o compare.html")
    #expect(outcome.status == 0 && outcome.output.isEmpty)
    #expect(outcome.errors == "Wrote compare.html; open it in a browser.\n")
    #expect(try sandbox.devices.permissions(of: "compare.html") == 0o600)
    let page = String(decoding: try sandbox.read("compare.html"), as: UTF8.self)
    #expect(page.contains(">With the password, 14 of 18 items move, and no more can;"))
    #expect(page.contains("Before you erase <bdi>old-phone</bdi>"))
    #expect(!page.contains("plum-orchard-42"))
    // Without --format html, the comparison has no page, and it is not a plan that can be saved.
    #expect(try sandbox.keyhaul("plan b.tar --to new-phone --password-file .bp --compare -o compare").status == 64)
  }

  @Test("The page of four restores of a device's items lists the items that are never in a backup, by app")
  func comparisonOfDevice() throws {
    let sandbox = try sandbox()
    let pageOfDevice = try sandbox.succeed("plan old-phone --to new-phone --compare --format html -o -")
    #expect(pageOfDevice.contains("Export or move the protected data in the app."))
    #expect(pageOfDevice.contains("<span>old-phone.backup</span>"))
  }

  @Test("The commands on the page of a device's plan begin with a backup, and end with its restore")
  func device() throws {
    let sandbox = try sandbox()
    let page = try sandbox.succeed("plan old-phone --to new-phone --existing merge --format html")
    let commands = page.matches(of: /<code><span>keyhaul.*?<\/code>/).map { match in
      match.output.replacing(/<[^>]*>/, with: "")
    }
    #expect(
      commands == [
        "keyhaul backup old-phone -o old-phone.backup", "keyhaul export old-phone --reveal -o codes.qr.html",
        "keyhaul plan old-phone.backup --to new-phone --existing merge -o move.plan",
        "keyhaul restore old-phone.backup --to new-phone --plan move.plan",
      ])
    // The page uses the device's names for the apps.
    #expect(page.contains("<bdi>bank</bdi>"))
  }

  @Test("The page of a redacted plan contains no name of an item, app or device")
  func redacted() throws {
    let sandbox = try sandbox()
    for source in ["b.tar --password-file .bp", "old-phone"] {
      let page = try sandbox.succeed("plan \(source) --to new-phone --redact --format html")
      #expect(page.contains("item-0003"))
      for name in [
        ">bank<", "bank.example", "chat", "anna", "push token", "old-phone", "new-phone", "b.tar", "AirPort",
      ] {
        #expect(!page.contains(name), "\(name) of \(source)")
      }
    }
  }
}
