// swift-tools-version: 6.2
import PackageDescription

/// What reads bytes that somebody else wrote, under libFuzzer. A package of its own: without a `main` it would break every
/// other build. `make fuzz` runs it; on Linux alone, where the tool chain brings libFuzzer.
let package = Package(
  name: "keyhaul-fuzzing",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "keyhaul", path: "../..")],
  targets: [
    // A fuzzer has no `main`: libFuzzer brings it.
    .executableTarget(
      name: "Fuzzer", dependencies: [.product(name: "KeyhaulKit", package: "keyhaul")],
      swiftSettings: [.unsafeFlags(["-parse-as-library"])])
  ],
  swiftLanguageModes: [.v6]
)
