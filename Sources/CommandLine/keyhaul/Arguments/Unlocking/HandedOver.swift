import KeyhaulKit

/// Keys on their way through closures that may be called once.
final class HandedOver {
  private var keys: ClassKeys?

  init(_ keys: consuming ClassKeys?) { self.keys = keys }

  func take() -> ClassKeys? { keys.take() }
}
