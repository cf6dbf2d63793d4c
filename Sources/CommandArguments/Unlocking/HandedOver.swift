package import DataProtection

/// Keys on their way through closures that may be called once.
package final class HandedOver {
  private var keys: ClassKeys?

  package init(_ keys: consuming ClassKeys?) { self.keys = keys }

  package func take() -> ClassKeys? { keys.take() }
}
