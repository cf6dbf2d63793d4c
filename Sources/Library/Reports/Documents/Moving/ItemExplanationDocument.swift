package import KeyhaulKit

/// The explanations of the items that the user asked about (`item-story/1`).
package struct ItemExplanationDocument {
  let explanations: [ItemExplanation]
  let source: PlanDocument.Source
  let target: String?
  let dump: PlanDocument.Dump?

  /// Creates the document of explanations.
  ///
  /// - Parameters:
  ///   - explanations: The explanations of the items.
  ///   - source: The backup or the device.
  ///   - target: The name of the target; `nil` if there is none.
  ///   - dump: The remarks about the source; `nil` if the source is not a dump or a database.
  package init(
    explanations: [ItemExplanation], source: PlanDocument.Source, target: String?, dump: PlanDocument.Dump? = nil
  ) {
    self.explanations = explanations
    self.source = source
    self.target = target
    self.dump = dump
  }

  package var json: JSONValue {
    let document: JSONValue = [
      "format": "item-story/1", "source": source.json, "target": .text(target),
      "stories": .array(explanations.map(Self.json)),
    ]
    return document.adding((dump.map { [("dump", $0.json)] } ?? []) + source.blindSpotFields)
  }

  private static func json(_ explanation: ItemExplanation) -> JSONValue {
    var fields: [(String, JSONValue)] = [("index", explanation.index.map { .count($0) } ?? .null)]
    fields += JSONValue.identity(explanation.identity)
    fields += [
      ("protection", .text(explanation.protection?.rawValue)),
      ("readable", explanation.protection.map(readability) ?? .null), ("restores", restores(explanation)),
    ]
    if let transfers = explanation.transfers { fields.append(("ways", transfers.json)) }
    if let containsSecureEnclaveKey = explanation.containsSecureEnclaveKey {
      fields.append(("holds_enclave_key", .boolean(containsSecureEnclaveKey)))
    }
    fields.append(("here", sourceState(explanation)))
    fields.append(("on_target", explanation.decisionOnTarget.map { PlanDocument.Item($0).json } ?? .null))
    fields.append(("do", .text(explanation.action)))
    return .object(fields)
  }

  /// Returns whether an app can read items of a class, for each state of the device.
  private static func readability(of protection: ProtectionClass) -> JSONValue {
    .object(
      [DeviceState.beforeFirstUnlock, .locked, .unlocked].map { state in
        (state.rawValue, .boolean(protection.isReadable(in: state)))
      })
  }

  /// Returns the outcome of each of the four restores, if it is known.
  private static func restores(_ explanation: ItemExplanation) -> JSONValue {
    .array(
      RestoreScenario.allCases.compactMap { scenario in
        explanation.restoreOutcomes[scenario].map { outcome in
          .object(ComparisonDocument.fields(scenario) + ComparisonDocument.fields(outcome))
        }
      })
  }

  /// Returns the outcome for an item in this backup or on this device.
  private static func sourceState(_ explanation: ItemExplanation) -> JSONValue {
    switch explanation.location {
    case .archive, .device:
      guard let decision = explanation.decision, let reason = decision.outcome.reason else { return ["state": "opens"] }
      return .object(
        [("state", .string(decision.outcome.fate.rawValue)), ("reason", .string(reason.rawValue))]
          + (decision.detail.map { [("detail", .string($0))] } ?? []))
    case .deleted: return ["state": .string(ItemFate.staysBehind.rawValue), "reason": .string(Reason.deleted.rawValue)]
    case .missing(let device, let rule):
      return ["state": "not-in-archive", "device": .string(device), "reason": .text(rule?.rawValue)]
    case .targetOnly(let isRemoved):
      return ["state": "target-only", "removed": .boolean(isRemoved)]
    }
  }
}

extension TransferAssessments {
  /// Each transfer method with its assessment and the rationale.
  package var json: JSONValue {
    .array(
      TransferMethod.allCases.map { method in
        [
          "way": .string(method.rawValue), "answer": .string(self[method].verdict.rawValue),
          "ground": .string(self[method].rationale.id),
        ]
      })
  }
}

extension ItemExplanation {
  /// The index of the item for `--item`, in the backup or in a backup that is made now; `nil` if the item is in neither.
  package var index: Int? {
    switch location {
    case .archive(let index), .device(let index): index
    case .deleted, .missing, .targetOnly: nil
    }
  }
}
