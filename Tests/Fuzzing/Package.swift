// swift-tools-version: 6.2
import PackageDescription

/// Settings that give these targets access to Keyhaul's `package` declarations. That package is named like its folder.
let inside: [SwiftSetting] = [
  .unsafeFlags([
    "-package-name",
    Context.packageDirectory.split(separator: "/").dropLast(2).last.map {
      String($0.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
    } ?? "",
  ])
]

/// Fuzzers for the code that parses untrusted bytes. They are a separate package, because a target without `main` would
/// break every other build. `make fuzz` runs them on Linux only, whose toolchain includes libFuzzer.
let package = Package(
  name: "keyhaul-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "keyhaul", path: "../..")],
  targets: [
    // libFuzzer provides `main`.
    .executableTarget(
      name: "Fuzzer",
      dependencies: [
        .product(name: "KeyhaulKit", package: "keyhaul"), .product(name: "DeviceServer", package: "keyhaul"),
      ],
      packageAccess: false, swiftSettings: inside + [.unsafeFlags(["-parse-as-library"])])
  ],
  swiftLanguageModes: [.v6]
)
