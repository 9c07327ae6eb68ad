# Install rules: `find_package(repotxn)` gives repotxn::txn and what it stands on.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(repotxn_installed storage wal locks refs objects txn)
foreach(folder ${repotxn_installed})
  install(TARGETS repotxn_${folder} EXPORT repotxnTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${folder} DESTINATION include/repotxn FILES_MATCHING PATTERN "*.h")
endforeach()
if(TARGET repotxn_wal_proto)
  install(TARGETS repotxn_wal_proto EXPORT repotxnTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(EXPORT repotxnTargets NAMESPACE repotxn:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/repotxn)
configure_file(${CMAKE_SOURCE_DIR}/cmake/repotxnConfig.cmake.in ${CMAKE_BINARY_DIR}/repotxnConfig.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/repotxnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/repotxnConfig.cmake ${CMAKE_BINARY_DIR}/repotxnConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/repotxn)
