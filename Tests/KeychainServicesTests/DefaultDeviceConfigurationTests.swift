import Basics
import Testing

@testable import KeychainServices

@Suite("Default device of the process")
struct DefaultDeviceConfigurationTests {
  @Test("Without settings, the default device has a passcode and one app with one access group")
  func standard() {
    let configuration = DefaultDeviceConfiguration(environment: [:], propertyList: [:])
    #expect(configuration.app == "app" && configuration.accessGroups == ["app"] && configuration.passcode == "0000")
  }

  private static let propertyList: [String: any Sendable] = [
    "CFBundleIdentifier": "org.example.app", "keychain-access-groups": ["TEAM.shared", "TEAM.app"],
  ]

  @Test("The property list sets the app and the access groups of the default device")
  func propertyListSettings() {
    let configuration = DefaultDeviceConfiguration(environment: [:], propertyList: Self.propertyList)
    #expect(configuration.app == "org.example.app" && configuration.accessGroups == ["TEAM.shared", "TEAM.app"])
  }

  @Test("Environment variables override the property list for the default device")
  func environmentVariables() {
    let environment = [
      "KEYHAUL_DEVICE_APP": "org.example.other", "KEYHAUL_DEVICE_GROUPS": " a , ,b,", "KEYHAUL_DEVICE_PASSCODE": "",
    ]
    let configuration = DefaultDeviceConfiguration(environment: environment, propertyList: Self.propertyList)
    #expect(configuration.app == "org.example.other" && configuration.accessGroups == ["a", "b"])
    #expect(configuration.passcode == "")
  }

  @Test("Without access groups, the app's identifier is the only group of the default device")
  func appWithoutGroups() {
    let environment = ["KEYHAUL_DEVICE_APP": "org.example.other"]
    let configuration = DefaultDeviceConfiguration(environment: environment, propertyList: [:])
    #expect(configuration.accessGroups == ["org.example.other"])
  }

  @Test("Blank values and values of other types do not change the default device")
  func invalidValues() {
    let propertyList: [String: Any] = ["CFBundleIdentifier": 7, "keychain-access-groups": "TEAM.app"]
    let environment = ["KEYHAUL_DEVICE_APP": " ", "KEYHAUL_DEVICE_GROUPS": ",,"]
    let configuration = DefaultDeviceConfiguration(environment: environment, propertyList: propertyList)
    #expect(configuration == DefaultDeviceConfiguration(environment: [:], propertyList: [:]))
  }
}
