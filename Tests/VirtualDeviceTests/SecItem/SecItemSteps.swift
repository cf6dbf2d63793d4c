import Basics
import KeychainFormats
import TestSupport

@testable import VirtualDevice

/// A step of a random sequence.
enum SecItemStep: CustomStringConvertible {
  case add(String, SecItemModel.Draft)
  case find(String, SecItemModel.Query, all: Bool)
  case update(String, SecItemModel.Query, SecItemModel.Change)
  case delete(String, SecItemModel.Query)
  case lock, unlock, restart, setPasscode, changePasscode, removePasscode

  static func random(using random: inout SeededRandom) -> SecItemStep {
    let app = ["mail", "shop"].randomElement(using: &random) ?? "mail"
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<7: return .add(app, .random(using: &random))
    case 7..<10: return .find(app, .random(using: &random), all: Bool.random(using: &random))
    case 10..<13: return .update(app, .random(using: &random), .random(using: &random))
    case 13..<15: return .delete(app, .random(using: &random))
    case 15: return .lock
    case 16: return .unlock
    case 17: return .restart
    case 18: return .setPasscode
    default: return Bool.random(using: &random) ? .changePasscode : .removePasscode
    }
  }

  var description: String {
    switch self {
    case .add(let app, let draft): "\(app) adds \(draft.query)"
    case .find(let app, let query, let all): "\(app) finds \(all ? "all" : "one") \(query.query)"
    case .update(let app, let query, let change): "\(app) updates \(query.query) with \(change.changes)"
    case .delete(let app, let query): "\(app) deletes \(query.query)"
    case .lock: "lock"
    case .unlock: "unlock"
    case .restart: "restart"
    case .setPasscode: "set a passcode"
    case .changePasscode: "change the passcode"
    case .removePasscode: "remove the passcode"
    }
  }
}

/// Returns a random value, or `nil` in half of the cases.
private func randomOrNil<Value>(_ values: [Value], _ random: inout SeededRandom) -> Value? {
  Bool.random(using: &random) ? values.randomElement(using: &random) : nil
}

/// The groups of the apps. The shared one is chosen most often.
private let groupNames = ["TEAM.mail", "TEAM.shop", "TEAM.shared", "TEAM.shared"]

extension SecItemModel.Kind {
  static func random(using random: inout SeededRandom) -> Self {
    Int.random(in: 0..<4, using: &random) == 0 ? .internet : .generic
  }

  var className: String { self == .generic ? "genp" : "inet" }
  var serviceKey: String { self == .generic ? "svce" : "srvr" }
}

extension SecItemModel.Draft {
  static func random(using random: inout SeededRandom) -> Self {
    Self(
      kind: .random(using: &random), account: ["a", "b"].randomElement(using: &random) ?? "a",
      service: ["", "s"].randomElement(using: &random) ?? "", group: randomOrNil(groupNames, &random),
      protection: randomOrNil(ProtectionClass.allCases, &random),
      isSynchronized: Int.random(in: 0..<4, using: &random) == 0,
      secret: "secret \(Int.random(in: 0..<9, using: &random))")
  }

  var query: SecItemQuery {
    var query: SecItemQuery = [
      "class": .string(kind.className), "acct": .string(account), "v_Data": .bytes(secret),
    ]
    if !service.isEmpty { query[kind.serviceKey] = .string(service) }
    if isSynchronized { query["sync"] = true }
    query["agrp"] = group.map { .string($0) }
    query["pdmn"] = protection.map { .string($0.rawValue) }
    return query
  }
}

extension SecItemModel.Query {
  static func random(using random: inout SeededRandom) -> Self {
    Self(
      kind: .random(using: &random), account: randomOrNil(["a", "b"], &random),
      service: randomOrNil(["", "s"], &random),
      group: Int.random(in: 0..<3, using: &random) == 0 ? randomOrNil(groupNames, &random) : nil,
      protection: Int.random(in: 0..<3, using: &random) == 0 ? randomOrNil(ProtectionClass.allCases, &random) : nil,
      synchronized: [.unspecified, .yes, .no, .any, .any].randomElement(using: &random) ?? .unspecified)
  }

  var query: SecItemQuery {
    var query: SecItemQuery = ["class": .string(kind.className)]
    query["acct"] = account.map { .string($0) }
    query[kind.serviceKey] = service.map { .string($0) }
    query["agrp"] = group.map { .string($0) }
    query["pdmn"] = protection.map { .string($0.rawValue) }
    switch synchronized {
    case .unspecified: break
    case .yes: query["sync"] = true
    case .no: query["sync"] = false
    case .any: query["sync"] = "syna"
    }
    return query
  }
}

extension SecItemModel.Change {
  static func random(using random: inout SeededRandom) -> Self {
    var change = Self()
    switch Int.random(in: 0..<6, using: &random) {
    case 0: change.account = ["a", "b"].randomElement(using: &random)
    case 1: change.label = "label \(Int.random(in: 0..<9, using: &random))"
    case 2: change.secret = "changed \(Int.random(in: 0..<9, using: &random))"
    case 3: change.group = groupNames.randomElement(using: &random)
    case 4: change.protection = ProtectionClass.allCases.randomElement(using: &random)
    default: change.isSynchronized = Bool.random(using: &random)
    }
    return change
  }

  var changes: SecItemQuery {
    var changes: SecItemQuery = [:]
    changes["acct"] = account.map { .string($0) }
    changes["labl"] = label.map { .string($0) }
    changes["v_Data"] = secret.map { .bytes($0) }
    changes["agrp"] = group.map { .string($0) }
    changes["pdmn"] = protection.map { .string($0.rawValue) }
    changes["sync"] = isSynchronized.map { .boolean($0) }
    return changes
  }
}
