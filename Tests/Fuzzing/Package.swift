// swift-tools-version: 6.2
import PackageDescription

/// Settings that show Keyhaul's `package` declarations to the targets here. That package is named like its folder.
let inside: [SwiftSetting] = [
  .unsafeFlags([
    "-package-name",
    Context.packageDirectory.split(separator: "/").dropLast(2).last.map {
      String($0.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
    } ?? "",
  ])
]

/// Fuzzers for the code that reads bytes of others. They are a separate package, because a target without `main` would break
/// every other build. `make fuzz` runs them on Linux only, whose toolchain includes libFuzzer.
let package = Package(
  name: "keyhaul-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "keyhaul", path: "../..")],
  targets: [
    // A fuzzer has no `main`: libFuzzer brings it.
    .executableTarget(
      name: "Fuzzer",
      dependencies: [
        .product(name: "KeyhaulKit", package: "keyhaul"), .product(name: "DeviceServer", package: "keyhaul"),
      ],
      packageAccess: false, swiftSettings: inside + [.unsafeFlags(["-parse-as-library"])])
  ],
  swiftLanguageModes: [.v6]
)
