
7
x0Placeholder*
dtype0*
shape:
/
x1Placeholder*
dtype0*
shape:
)

BitwiseAnd
BitwiseAndx0x1*
T0
)
IdentityIdentity
BitwiseAnd*
T0