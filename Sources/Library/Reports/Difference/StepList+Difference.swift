import KeyhaulKit

extension StepList {
  /// Creates the steps after a comparison. No step repeats what the page already says.
  init(_ page: DifferencePage) {
    let steps = DifferenceSteps(first: page.first, second: page.second, difference: page.difference)
    let applicable: [Step?] = [
      steps.newBackup, steps.decrypting(possibleMatchCount: page.possibleMatchCount), steps.verifying, steps.planning,
    ]
    self.init(steps: applicable.compactMap(\.self))
  }
}

private struct DifferenceSteps {
  let first: DifferencePage.Side
  let second: DifferencePage.Side
  let difference: KeychainDifference

  /// The step to make a new backup, if the device has changed since the backup and still has items.
  var newBackup: StepList.Step? {
    guard second.kind == .device, first.kind == .archive, !difference.isEmpty, second.itemCount > 0 else { return nil }
    return .init(
      text: "Make a new backup of \(HTMLWriter.shortened(second.name)) as it is now.",
      commands: [SuggestedCommands.backup(of: second.commandArgument, to: "new.backup")])
  }

  func decrypting(possibleMatchCount: Int) -> StepList.Step? {
    guard possibleMatchCount > 0, difference.undecrypted.occurrenceCount > difference.undecrypted.damaged else {
      return nil
    }
    return .init(
      text: "To see which encrypted items are the same, supply the key of their source device and compare again.",
      commands: [SuggestedCommands.diff(first.commandArgument, second.commandArgument, deviceKey: "PATH")])
  }

  /// The step to verify the backups, if items are damaged. There is no such step for devices, which have no copies.
  var verifying: StepList.Step? {
    let backups = [first, second].filter { $0.kind == .archive }
    guard difference.undecrypted.damaged > 0, !backups.isEmpty else { return nil }
    return .init(
      text: "Find out what is damaged, and look for another copy.",
      commands: backups.map { SuggestedCommands.verify($0.commandArgument) })
  }

  var planning: StepList.Step? {
    guard second.kind == .archive, second.hasKeychain, second.itemCount > 0, !difference.isEmpty else { return nil }
    let device = first.kind == .device ? first : nil
    return .init(
      text: "See what restoring \(HTMLWriter.shortened(second.name)) to "
        + "\(device.map { HTMLWriter.shortened($0.name) } ?? "a device") would do. Nothing is changed.",
      commands: [SuggestedCommands.plan(second.commandArgument, onto: device?.commandArgument ?? "DEVICE")])
  }
}
