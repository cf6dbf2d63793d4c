import KeyhaulKit
import Reports

extension PlanCommand {
  /// Plans for a backup that the device of a dump or of a database would give, as far as either tells its items.
  func plan(
    _ found: FoundDump, onto target: FoundDevice?, maker: FoundDevice?, _ expectations: [PlanExpectation]?,
    in session: Session
  ) throws -> CommandStatus {
    guard maker == nil else {
      throw CommandFailure.usage(
        "--source is about a backup", why: "\(found.typed) is a \(found.noun), which does not name its source device",
        try: "leave --source out")
    }
    try found.refuse(unlocking)
    try found.refusePage(in: session)
    guard let target else {
      throw CommandFailure.usage(
        "a plan of a \(found.noun) needs --to",
        why: "\(found.typed) does not name its source device, so Keyhaul cannot say what would be "
          + "lost", try: "--to DEVICE; keyhaul device create NAME makes one")
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
        report: try report(plan, of: source, onto: device, in: session), word: found.typed, isSameDevice: nil
      ) { () throws(CommandFailure) in
        throw .usage(
          "--compare and --audit do not work with a \(found.noun)", why: "it does not name its source device",
          try: "leave --compare or --audit out")
      }
      return try finish(outlook, expectations, isDamaged: false, in: session)
    }
  }
}
