package import KeychainFormats
package import Migration

/// What the documents of a move begin and end with.
package struct MoveDocument {
  package let source: PlanDocument.Source
  package let target: PlanDocument.Target
  package let summary: PlanDocument.Summary

  package init(_ plan: PlanDocument) {
    source = plan.source
    target = plan.target
    summary = plan.summary
  }
}

extension PlanDocument.Source {
  /// What the document ends with: nothing for a device, whose plan names every item.
  package var unseenFields: [(String, JSONValue)] { kind == .device ? [] : [UnseenItems.field] }
}
