import Foundation
import Testing

@testable import keyhaul

/// A password command stands for a person who takes their time: while it runs, somebody else uses the devices.
@Suite("While a password is waited for")
struct WaitingForPasswordTests {
  @Test(
    "nobody is kept from the devices that the question is about",
    arguments: [
      "plan b.tar --to new-phone", "plan b.tar --source old-phone", "why b.tar --account anna --to new-phone",
    ])
  func othersMayWrite(line: String) throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let other = """
      printf x | keyhaul item add new-phone --service later --account me --secret-file - -q --wait 0 && \
      printf x | keyhaul item add old-phone --service later --account me --secret-file - -q --wait 0 && cat .bp
      """
    try world.write(Array(other.utf8), to: "ask.sh")
    let outcome = try world.keyhaul("\(line) --password-command 'sh ask.sh'")
    #expect(outcome.status == 0, "\(outcome)")
    for phone in ["new-phone", "old-phone"] {
      #expect(try world.succeed("item find \(phone) --service later").contains("later"))
    }
  }

  @Test("the plan is of the devices as they are afterwards")
  func planIsOfAfterwards() throws {
    let world = try MoveWorld(backedUpTo: "b.tar")
    let before = try world.object(world.succeed("device show new-phone --json"))
    try world.write(
      Array("printf x | keyhaul item add new-phone --service later --account me --secret-file - -q && cat .bp".utf8),
      to: "ask.sh")
    let plan = try world.object(
      world.succeed("plan b.tar --to new-phone --password-command 'sh ask.sh' --json"))
    let target = try #require(plan["target"] as? [String: Any])
    #expect(target["revision"] as? String != before["revision"] as? String)
    let removed = try #require(plan["removed"] as? [[String: Any]])
    #expect(removed.contains { $0["service"] as? String == "later" })
  }
}
