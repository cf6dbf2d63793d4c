import KeyhaulKit

/// Seeds that everybody has: with the name of a device they give the published hardware key.
enum PublishedSeeds {
  static let all = [BundledFixtures.seed]
}
