
7
x0Placeholder*
dtype0*
shape:
/
x1Placeholder*
dtype0*
shape:
+
TruncateModTruncateModx0x1*
T0
*
IdentityIdentityTruncateMod*
T0