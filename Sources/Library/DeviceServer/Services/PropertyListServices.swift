import Basics
package import KeychainFormats

/// The small services whose requests and answers are property lists in the frames of lockdown.
package enum PropertyListServices {
  /// Returns the answers of the installation proxy.
  ///
  /// - Parameter applications: The bundle identifiers of the device's apps, derived from their access groups.
  package static func installationProxy(
    _ request: PropertyDictionary, applications: [String]
  ) -> [PropertyDictionary] {
    guard request["Command"]?.stringValue == "Browse" else { return [["Error": .string("UnknownCommand")]] }
    let completion: PropertyDictionary = ["Status": .string("Complete")]
    guard !applications.isEmpty else { return [completion] }
    let entries = applications.map { PropertyValue.dictionary(["CFBundleIdentifier": .string($0)]) }
    let page: PropertyDictionary = [
      "Status": .string("BrowsingApplications"), "CurrentIndex": .integer(0),
      "CurrentAmount": .integer(Int64(entries.count)), "CurrentList": .array(entries),
    ]
    return [page, completion]
  }

  /// Returns the answer of the diagnostics relay, and whether the client is done.
  package static func diagnostics(_ request: PropertyDictionary) -> (answer: PropertyDictionary, isDone: Bool) {
    switch request["Request"]?.stringValue {
    case "Goodbye": return (["Status": .string("Success")], true)
    case "MobileGestalt":
      var values: PropertyDictionary = ["Status": .string("Success")]
      for key in request["MobileGestaltKeys"]?.arrayValue ?? [] where key.stringValue == "PasswordConfigured" {
        // True would make clients ask for a passcode to be entered on the device.
        values["PasswordConfigured"] = .boolean(false)
      }
      return (
        ["Status": .string("Success"), "Diagnostics": .dictionary(["MobileGestalt": .dictionary(values)])], false
      )
    default: return (["Status": .string("UnknownRequest")], false)
    }
  }

  /// Returns the answer of the service for the home screen. A virtual device has no icons.
  package static func springBoard(_ request: PropertyDictionary) -> PropertyDictionary {
    request["command"]?.stringValue == "getIconPNGData" ? ["pngData": .data([])] : ["Error": .string("UnknownCommand")]
  }

  private static let maximumLoggedCharacterCount = 64

  /// Returns the name of a request, and the notification in it. No other value is logged.
  static func summary(of request: PropertyDictionary) -> String {
    ["Command", "Request", "command", "Name"].compactMap {
      request[$0]?.stringValue?.prefix(maximumLoggedCharacterCount)
    }
    .joined(separator: " ")
  }

  /// Serves one of the services until the client ends the conversation.
  ///
  /// - Parameters:
  ///   - channel: The connection.
  ///   - log: Receives the name of each request.
  ///   - answer: Returns the answers to a request, and whether the client is done.
  /// - Throws: The errors of the channel; `.malformed` for bytes that are not property lists.
  package static func run(
    on channel: any ByteChannel, logging log: (String) -> Void = { _ in },
    _ answer: (PropertyDictionary) throws(WireError) -> (answers: [PropertyDictionary], isDone: Bool)
  ) throws(WireError) {
    while let value = try PropertyListFrame.small.read(from: channel, within: nil) {
      guard let request = value.dictionaryValue else {
        throw WireError(.malformed, "a request is not a dictionary")
      }
      log(summary(of: request))
      let (answers, isDone) = try answer(request)
      for answer in answers {
        try channel.write(try PropertyListFrame.bytes(of: .dictionary(answer), as: .xml))
      }
      if isDone { return }
    }
  }
}
