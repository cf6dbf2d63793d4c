import CommandArguments
import CommandSession
import Migration
import Reports
import VirtualDevice

extension Plan {
  /// Plans for a backup that the device of a dump would give, as far as the dump tells its items.
  func plan(
    _ found: FoundDump, onto target: FoundDevice?, _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandStatus {
    try found.refuse(unlocking)
    try found.refusePage(in: session)
    guard let target else {
      throw CommandFailure.usage(
        "a plan of a dump needs --to",
        why: "nothing says of which device \(found.typed) is, so that nothing can be lost "
          + "with it", try: "--to DEVICE; keyhaul device create NAME makes one")
    }
    return try target.hold(.reading) { device in
      let plan: MigrationPlan
      do throws(MigrationError) {
        plan = try Restorer.plan(
          found.dump, named: found.typed, hasPassword: !noPassword, onto: device, policy: move.policy)
      } catch {
        throw CommandFailure(error, device: device.name)
      }
      let source = MoveSource(
        of: found.dump, name: found.typed, digest: found.digest, hasPassword: !noPassword)
      let outlook = Outlook(
        report: try report(plan, of: source, onto: device), word: found.typed, isSameDevice: nil
      ) { () throws(CommandFailure) in
        throw .usage(
          "a dump is not compared in four restores", why: "nothing says of which device it is",
          try: "leave --compare or --audit out")
      }
      return try finish(outlook, expectations, isDamaged: false, in: session)
    }
  }
}
