// Every command uses the library, so one import in this file is enough.
@_exported import KeyhaulKit
