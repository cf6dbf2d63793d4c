import Foundation
import Testing

@testable import keyhaul

@Suite("A plan as a page in a file")
struct PlanPageFileTests {
  private let line = "plan b.tar --to new-phone --password-file .bp --format html"

  private func world() throws -> MoveWorld {
    let world = try MoveWorld()
    try world.backUp(to: "b.tar")
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
    #expect(page.contains(">14 of 18 items move to new-phone; 4 stay behind.<"))
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
    #expect(refused.terminal.contains("a page is nothing to read on a terminal"))
    #expect(!refused.terminal.contains("<!DOCTYPE"))
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

  @Test("is a form of plans, and of no other result")
  func otherVerbs() throws {
    let world = try world()
    for verb in ["device list", "item find old-phone", "explain"] {
      #expect(try world.keyhaul("\(verb) --format html").status == 64)
    }
    #expect(try world.keyhaul("\(line) --json").status == 64)
  }
}
