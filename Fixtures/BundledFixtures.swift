public enum BundledFixtures {}
