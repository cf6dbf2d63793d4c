import KeyhaulKit

extension StepList {
  /// What to do after a comparison: each step asks for something that the page does not say already.
  init(_ page: DifferencePage) {
    let steps = DifferenceSteps(first: page.first, second: page.second, difference: page.difference)
    self.init(
      steps: [steps.newBackup, steps.opening(page.doubtfulCount), steps.verifying, steps.planning].compactMap(\.self))
  }
}

private struct DifferenceSteps {
  let first: DifferencePage.Side
  let second: DifferencePage.Side
  let difference: KeychainDifference

  /// The device has gone on since the backup. An empty keychain needs none.
  var newBackup: StepList.Step? {
    guard second.kind == .device, first.kind == .archive, !difference.isEmpty, second.itemCount > 0 else { return nil }
    return .init(
      words: "Make a new backup of \(Markup.shortened(second.name)) as it is now.",
      commands: [Commands.backup(of: second.word, to: "new.backup")])
  }

  func opening(_ doubtfulCount: Int) -> StepList.Step? {
    guard doubtfulCount > 0, difference.sealed.placeCount > difference.sealed.damaged else { return nil }
    return .init(
      words: "Compare again with the key of the device whose items are encrypted, to see which of them are the same.",
      commands: [Commands.diff(first.word, second.word, deviceKey: "PATH")])
  }

  /// Of a device there is no other copy.
  var verifying: StepList.Step? {
    let archives = [first, second].filter { $0.kind == .archive }
    guard difference.sealed.damaged > 0, !archives.isEmpty else { return nil }
    return .init(
      words: "Find out what is damaged, and look for another copy.",
      commands: archives.map { Commands.verify($0.word) })
  }

  var planning: StepList.Step? {
    guard second.kind == .archive, second.hasKeychain, second.itemCount > 0, !difference.isEmpty else { return nil }
    let device = first.kind == .device ? first : nil
    return .init(
      words: "See what restoring \(Markup.shortened(second.name)) would do on "
        + "\(device.map { Markup.shortened($0.name) } ?? "a device"), before it is done.",
      commands: [Commands.plan(second.word, onto: device?.word ?? "DEVICE")])
  }
}
